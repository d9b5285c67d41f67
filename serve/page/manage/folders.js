// Files that were chosen or dropped, folders with all that is below them.

/** Return files as {name, file}. */
export const plain = (files) => [...files].map((file) => ({ name: file.name, file }));

/** Return the files of a chosen folder as {path, file}; a path is a list of names. */
export const picked = (files) => [...files].map((file) => ({ path: (file.webkitRelativePath || file.name).split("/"), file }));

/** Return what was dropped as entries of a file system; to be called while the drop is handled. */
export const entriesOf = (items) => [...items].map((item) => item.webkitGetAsEntry()).filter(Boolean);

/** Return all files below entries as {path, file}, or {path, error} where one cannot be read. */
export async function filesBelow(entries) {
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  const path = entry.fullPath.split("/").slice(1);
  try {
    if (entry.isDirectory) for (const one of await children(entry)) await walk(one, found);
    else found.push({ path, file: await fileOf(entry) });
  } catch (error) {
    found.push({ path, error: `the browser cannot read it (${error.name})` });
  }
}

async function fileOf(entry) {
  const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
  await file.slice(0, 1).arrayBuffer(); // fails now and not while it is sent
  return file;
}

/** Read a folder to its end; a browser gives a hundred at a time. */
async function children(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...some);
  }
}
