#!/usr/bin/env bash
# Build llama.cpp for an NVIDIA GPU: llama-cpp-python in an environment, llama-server in a checkout.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/llama-cuda.sh [--python PATH] [--llama-cpp DIR] [--arch LIST] [--jobs N] [--dry-run]

  --python PATH     build llama-cpp-python with CUDA for this Python (default: .venv/bin/python)
  --no-python       leave llama-cpp-python as it is
  --llama-cpp DIR   build llama-server with CUDA in this checkout of ggml-org/llama.cpp
  --arch LIST       GPU generations to build for, such as "89" (RTX 40), "90" (H100), "80;90";
                    default: the GPU of this machine
  --jobs N          compile N files at once (default: all cores)
  --dry-run         print the commands and run nothing

Needs the CUDA toolkit (nvcc), a driver (nvidia-smi), cmake and a C++ compiler. It takes 10 to 40
minutes. docs/how-to/language-model.md says how to use the result.
TEXT
}

fail() {
    printf 'llama-cuda: %s\n' "$1" >&2
    exit "${2:-1}"
}

python=".venv/bin/python"
checkout=""
arch=""
jobs="$(getconf _NPROCESSORS_ONLN)"
dry=false

value() { # the value of a flag, which must be there
    [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value; --help shows the usage" 2
    printf '%s' "$2"
}

while [ $# -gt 0 ]; do
    case "$1" in
        --python) python="$(value "$@")"; shift 2 ;;
        --no-python) python=""; shift ;;
        --llama-cpp) checkout="$(value "$@")"; shift 2 ;;
        --arch) arch="$(value "$@")"; shift 2 ;;
        --jobs) jobs="$(value "$@")"; shift 2 ;;
        --dry-run) dry=true; shift ;;
        -h | --help) usage; exit 0 ;;
        *) fail "unknown flag: $1; --help shows the usage" 2 ;;
    esac
done

[[ "$jobs" =~ ^[1-9][0-9]*$ ]] || fail "--jobs must be a whole number from 1, it is: $jobs" 2
[[ -z "$arch" || "$arch" =~ ^[0-9]+[a-z]?(\;[0-9]+[a-z]?)*$ ]] ||
    fail "--arch must be numbers with ';' between, such as 80;90, it is: $arch" 2
[ -n "$python" ] || [ -n "$checkout" ] || fail "nothing to do: --no-python without --llama-cpp" 2

need() { # program, what it is for
    command -v "$1" >/dev/null 2>&1 || fail "$1 is not on PATH: $2"
}

check() {
    need nvcc "install the CUDA toolkit and put its bin folder on PATH"
    need nvidia-smi "install the NVIDIA driver"
    nvidia-smi --query-gpu=name --format=csv,noheader >/dev/null 2>&1 ||
        fail "nvidia-smi finds no GPU: check the driver (a container needs --gpus all)"
    need cmake "install cmake 3.18 or newer"
    need c++ "install a C++ compiler, such as g++"
    [ -z "$python" ] || [ -x "$python" ] || fail "no Python at $python: run make setup, or --python"
    [ -z "$checkout" ] || [ -f "$checkout/CMakeLists.txt" ] ||
        fail "no checkout of llama.cpp at $checkout: git clone https://github.com/ggml-org/llama.cpp"
}

run() { # print a command as it could be typed; run it unless dry
    printf '+'
    printf ' %q' "$@"
    printf '\n'
    "$dry" || "$@"
}

flags=("-DGGML_CUDA=on")
[ -z "$arch" ] || flags+=("-DCMAKE_CUDA_ARCHITECTURES=$arch")

"$dry" || check

if [ -n "$python" ]; then
    # --no-deps: what it needs is there from `make llama`, and must not move.
    run env "CMAKE_ARGS=${flags[*]}" "CMAKE_BUILD_PARALLEL_LEVEL=$jobs" \
        "$python" -m pip install --force-reinstall --no-deps --no-cache-dir \
        --no-binary llama-cpp-python -c constraints.txt llama-cpp-python
    run "$python" -c 'import llama_cpp, sys; sys.exit(not llama_cpp.llama_supports_gpu_offload())'
fi

if [ -n "$checkout" ]; then
    run cmake -S "$checkout" -B "$checkout/build-cuda" -DCMAKE_BUILD_TYPE=Release "${flags[@]}"
    run cmake --build "$checkout/build-cuda" --target llama-server --parallel "$jobs"
    run "$checkout/build-cuda/bin/llama-server" --list-devices
    printf 'now: export CARREL_LLAMA__SERVER=%q\n' "$checkout/build-cuda/bin/llama-server"
fi
