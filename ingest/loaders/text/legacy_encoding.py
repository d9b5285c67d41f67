"""Which legacy encoding bytes are in: the one whose characters make the likeliest words."""

from __future__ import annotations

import codecs
import re
import unicodedata

HANZI = frozenset(
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过"
    "子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体"
    "制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内"
    "数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提"
    "直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计"
    "别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造百规热领七海"
    "口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采转更单风切打白教速花带安场身"
    "车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石"
    "记需段研界拉林律叫且究观越织装影算低持音众书布复容儿须际商非验连断深难近矿千周委素技备半办青"
    "省列习响约支般史感劳便团往酸历市克何除消构府称太准精值号率族维划选标写存候毛亲快效斯院查江型"
    "眼王按格养易置派层片始却专状育厂京识适属圆包火住调满县局照参红细引听该铁价严龙飞湾歌剧站版球"
    "岛鱼赛州港河曾尼视英语德影演亚罗巴士字游校村洲击获著名园曲奥职季助画湖密木项职兰星城"
)  # fmt: skip
# The same in traditional writing, where it differs.
TRADITIONAL = frozenset(
    "這個們來為時國說會對過發還後學動開現沒樣經問無見間關長電實點應機業體當進種將從兩頭讓給書東車"
    "門馬魚聽寫讀語話認識錢號裡節氣飛場級題產務報戰軍歷區縣權選義兒亞萬與專並廣總統聯熱觀計設論證"
    "該調變類資質費賽邊達運連遠適處備導師帶張強錄態術極構標檢濟測滿狀畫眾確積稱紅約組細結絕繼續維"
    "網羅職藝營補規視覺訂記許訪詞譯課負貨購輪較輸輕農釋鐵銀銷錯陽階際陸難預領頻風驗龍單雙圖團聲復"
    "夠審賓顯雜條黨員島劇灣蘭數線別劃決嚴壓爭親歡協華衛傳價優僅則創辦勞勢獻勵醫賣"
)
HANGUL = frozenset(
    "이다는을의에가고지하한기사로도은자어인대리시들그해나서정를보일아제수부전있장스과주여상원것와만게"
    "으라구국동성선신조화공경마우비방소연관오회요미된계모무행실세되안등차분물개유문산학년식적영말내"
    "생중면습니까합위었않없때후간진반"
)
# Pairs of letters that make up three quarters of Russian and Ukrainian text.
CYRILLIC_PAIRS = frozenset(
    (
        "ст то но ни на ен по ра ко ро ан ов ре пр ос ол ор та ер го те ны ли ес от ет ва во ль "
        "не ле ом он ка ри од ог ть ат ти ит ал ел ме ла ак ск об ой ве де тр ин мо ас за ки ло "
        "ед да до ие ми че со ил ся ем ия ав им ис ви тв се из же ар нн бо ма ам бы ди вы аз тс "
        "ля сл ые ру ча ьн ив пе ци сп ии чт их ей нт ок ир эт ое ий ик ож ек па ич ая ых ут ту "
        "ют ры оп га ше ег са ад дн ез вл хо си гр ый ае аю нс ду ги ым оч ев бе вс чи ур ши ні "
        "ві єт ії ів мі рі ці що лі іс ін як кі іт пі іл їх ій іб зі бі ід ає єю іч ґр їн є ї із"
    ).split()
)
GREEK = frozenset("αοιεντσηκρπυλμςάόίέδθγχωή")
HEBREW = frozenset("יוהלאתרבמשנםד")
ARABIC = frozenset("اليمونرتبةعدسفهكقأحجى")
_WESTERN = "éèêëàâäáåãæçñöøôóüùûúïîíßœªº"
_CENTRAL = "áéíóúýäöüßąćęłńśźżčďěňřšťůžőűâîşô"
# The letters above ASCII of the languages that an encoding is for.
LATIN = {
    "cp1250": frozenset(_CENTRAL),
    "iso8859_2": frozenset(_CENTRAL),
    "cp1254": frozenset("çğıiöşüâîû"),
    "cp1257": frozenset("ąčęėįšųūžāēģīķļņõäöü"),
}
WESTERN = frozenset(_WESTERN)
# Letters that such languages have, but seldom.
SELDOM = frozenset("õìòýăđţľç")
RARE = frozenset("ψξζβφΰΐϊϋฃฅฆฌฎฏฐฑฒฬฯ๏๐๑๒๓๔๕๖๗๘๙๚๛")
FINAL = frozenset("ςךםןףץ")
NOT_FINAL = frozenset("σכמנפצ")
# What stands beside words, not in them.
MARKS = frozenset("«»„“”‘’–—…№§©®°·•€£±¿¡™´¨")
CJK_MARKS = frozenset("。，、；：？！「」『』（）《》“”‘’—…·〈〉【】　～")


_BAD = -5.0  # of a character that no text has; source not recorded


def score(text: str, latin: frozenset[str] = WESTERN) -> float:
    """Rate how much text looks like words: the mean over its characters above ASCII, up to 1.

    `latin` are the accented letters that are usual in the encoding it was read in.
    """
    total, count = 0.0, 0
    padded = f" {text} "
    for at, character in enumerate(text, start=1):
        if character > "\x7f":
            count += 1
            total += _weight(padded[at - 1], character, padded[at + 1], latin)
        elif character < " " and character not in "\t\n\r\f\x1a\x1b":
            count += 1
            total += _BAD
    return total / count if count else 0.0


def _weight(before: str, here: str, after: str, latin: frozenset[str]) -> float:
    script = _script(here)
    if script == "bad":
        return _BAD
    if script in ("hanzi", "kana", "hangul", "wide"):
        return _east_asian(before, here, script)
    if script == "mark":
        return _mark(before, here, after)
    return _alphabetic(before, here, after, script, latin)


def _mark(before: str, here: str, after: str) -> float:
    if here not in MARKS:
        return -1.5 if before.isalpha() and after.isalpha() else -0.8
    if before.isalpha() and after.isalpha() and here not in "’·–":
        return -1.5
    return 0.5


def _script(character: str) -> str:
    code = ord(character)
    if character == "\ufffd" or code < 0xA0 or 0xE000 <= code < 0xF900 or code > 0xFFFF:
        return "bad"
    if code < 0x250:
        return "latin" if character.isalpha() else "mark"
    for script, start, end in (
        ("greek", 0x370, 0x400), ("cyrillic", 0x400, 0x530), ("hebrew", 0x591, 0x600),
        ("arabic", 0x600, 0x700), ("thai", 0xE00, 0xE80), ("kana", 0x3041, 0x3100),
        ("hanzi", 0x3400, 0xA000), ("hangul", 0xAC00, 0xD7B0), ("hanzi", 0xF900, 0xFB00),
        ("wide", 0x3000, 0x3041), ("wide", 0xFF01, 0xFF61),
    ):  # fmt: skip
        if start <= code < end:
            return script
    return "mark"


def _east_asian(before: str, here: str, script: str) -> float:
    if script == "wide":
        return 0.8 if here in CJK_MARKS else 0.0
    if script == "kana":
        return 0.9 if here < "\u30a0" else 0.6
    if script == "hangul":
        return (1.0 if here in HANGUL else 0.2) - 0.5 * (_script(before) == "hanzi")
    if here in HANZI or here in TRADITIONAL:
        return 1.0
    return -0.5 if _script(before) == "hangul" else 0.15 if _is_usual(here) else -0.7


def _is_usual(character: str) -> bool:
    """Tell whether a character is of the first level of GB 2312 or Big5."""
    try:
        if 0xB0 <= character.encode("gb2312")[0] <= 0xD7:
            return True
    except UnicodeEncodeError:
        pass
    try:
        return 0xA4 <= character.encode("big5")[0] <= 0xC6
    except UnicodeEncodeError:
        return False


def _alphabetic(before: str, here: str, after: str, script: str, latin: frozenset[str]) -> float:
    near = [_script(c) if c > "\x7f" else "latin" for c in (before, after) if c.isalpha()]
    if any(other != script for other in near):
        return -1.2  # no word is written in two scripts
    if (before.islower() and here.isupper()) or (here.islower() and after.isupper()):
        return -1.5
    if here in FINAL and after.isalpha() or here in NOT_FINAL and not after.isalpha():
        return -1.0
    if script == "cyrillic":
        return _cyrillic(before, here)
    low = here.lower()
    if script == "latin":
        alone = sum(c > "\x7f" for c in (before, after) if c.isalpha()) * 0.2
        return (0.8 if low in latin else 0.4 if low in SELDOM else -0.2) - alone
    common = {"greek": GREEK, "hebrew": HEBREW, "arabic": ARABIC}
    if low in RARE:
        return -0.5
    if script in ("thai", "hebrew") and low not in common.get(script, ()):
        return 0.5
    return 0.9 if low in common[script] else 0.0


def _cyrillic(before: str, here: str) -> float:
    lower = 0.1 if here.islower() else 0.0
    if not before.isalpha():
        return 0.5 + lower
    pair = (before + here).lower()
    return (0.9 if pair in CYRILLIC_PAIRS else 0.0) + lower


# How much better text must read for a rarer encoding to be chosen before a commoner one.
CANDIDATES = {
    "cp1252": 0.0, "cp1251": 0.0, "gb18030": 0.0, "koi8_u": 0.0, "cp866": 0.0, "big5": 0.02,
    "cp932": 0.02, "cp949": 0.02, "euc_jp": 0.03, "cp1125": 0.01, "cp855": 0.03, "iso8859_5": 0.03,
    "cp1250": 0.03, "iso8859_2": 0.04, "cp1254": 0.03, "cp1257": 0.04, "iso8859_15": 0.07,
    "cp850": 0.1, "cp437": 0.12, "mac_cyrillic": 0.05, "mac_roman": 0.12, "cp1253": 0.15,
    "iso8859_7": 0.16, "iso8859_6": 0.17, "cp1255": 0.15, "cp1256": 0.15, "cp874": 0.2,
}  # fmt: skip
_SAMPLE = 6_000  # bytes; chosen, not measured
_FROM_HIGH = re.compile(rb"[\x80-\xff][^\r\n]{0,6000}")
_LINE_END = re.compile(rb"[\r\n]")
_BEFORE = 200  # bytes; chosen, not measured
_LEAST = -0.5  # a score below it is no text; source not recorded
_CHINESE = ("gb18030", "big5", "cp949")
_KANA_COST = 0.5  # for each share of kana in Chinese text; source not recorded
_BELIEVED = 0.15  # for the encoding that a file names itself; source not recorded
_PARTS = {
    "iso8859_1": "cp1252", "koi8_r": "koi8_u", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949", "tis_620": "cp874", "iso8859_9": "cp1254",
    "iso8859_13": "cp1257", "big5hkscs": "big5", "cp950": "big5",
}  # fmt: skip
_ESCAPED = ("iso2022_jp_2", "iso2022_kr")
# Four bytes first: half of such text is NUL in two.
_WIDE = {"utf-32-le": 4, "utf-32-be": 4, "utf-16-le": 2, "utf-16-be": 2}
_ODD = ("Cc", "Cn", "Co", "Cs")
_MAX_ODD = 0.02  # share of characters; source not recorded
_LEAST_WIDE = 0.1  # the score of a text in UTF-16; source not recorded
_SURE = 0.6  # below this score UTF-16 and UTF-32 are tried; source not recorded


def guess(raw: bytes, declared: str = "") -> str | None:
    """Return the name of the likeliest encoding of bytes that are no UTF, or None if none fits.

    A declared one is chosen when it reads nearly as well as the best.
    """
    sample = b"\n".join(_take_sample(raw))
    scored = {
        name: score(sample.decode(name, "replace"), LATIN.get(name, WESTERN))
        - (_KANA_COST * _kana(sample.decode(name, "replace")) if name in _CHINESE else 0.0)
        for name in CANDIDATES
    }
    believed = _usual(declared)
    name = max(
        scored, key=lambda name: scored[name] - CANDIDATES[name] + _BELIEVED * (name == believed)
    )
    if scored[name] < _SURE and (utf := wide(raw)):
        text = raw[: _SAMPLE // 4 * 4].decode(utf, "ignore")
        if score(text) >= scored[name]:
            return utf
    return name if scored[name] > _LEAST else None


def _usual(declared: str) -> str:
    """Return the candidate that a declared encoding is a part of, or ""."""
    try:
        name = codecs.lookup(declared).name.replace("-", "_")
    except LookupError:
        return ""
    name = _PARTS.get(name, name)
    return name if name in CANDIDATES else ""


def _kana(text: str) -> float:
    """Return the share of Japanese letters, which the Chinese encodings have too."""
    foreign = [character for character in text if character > "\x7f"]
    return sum("\u3041" <= c < "\u3100" for c in foreign) / max(len(foreign), 1)


def find_escape_encoding(raw: bytes) -> str | None:
    """Return which encoding of seven bits with escapes bytes are in, or None."""
    for name in _ESCAPED:
        try:
            raw[: raw.rfind(b"\n") + 1 or None].decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return None


def wide(raw: bytes) -> str | None:
    """Return which UTF-16 or UTF-32 without a mark bytes are in, or None."""
    for name, unit in _WIDE.items():
        sample = raw[: _SAMPLE // unit * unit]
        try:
            text = sample[: len(sample) // unit * unit].decode(name)
        except UnicodeDecodeError:
            continue
        odd = sum(unicodedata.category(c) in _ODD and c not in "\t\n\r\f" for c in text)
        if (
            text
            and odd <= _MAX_ODD * len(text)
            and (unit == 4 or text.isascii() or score(text) > _LEAST_WIDE)
        ):
            return name
    return None


def _take_sample(raw: bytes) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    for match in _FROM_HIGH.finditer(raw):
        start = match.start()
        before = _LINE_END.split(raw[max(0, start - _BEFORE) : start])[-1]
        lines.append((before + match.group())[:_SAMPLE])
        size += len(lines[-1])
        if size > _SAMPLE:
            break
    return lines
