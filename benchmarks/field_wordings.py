"""Words for made-up works and for questions about their fields, in four languages.

`field_questions` reports the first half of each list apart from the second. "{t}" is the title.
"""

from __future__ import annotations

FIRST = {
    "en": ["Ada", "Tomas", "Irene", "Victor", "Mabel", "Hugo", "Clara", "Owen"],
    "ru": ["Анна", "Павел", "Ирина", "Виктор", "Мария", "Олег", "Клара", "Егор"],
    "uk": ["Оксана", "Тарас", "Ірина", "Віктор", "Марія", "Остап", "Клара", "Юрій"],
    "zh": ["王", "李", "陈", "赵", "周", "吴", "郑", "孙"],
}
ENDINGS = {"en": ["man", "ley", "son"], "ru": ["ов", "ин"], "uk": ["енко", "чук"], "zh": []}
SYLLABLES = {
    "en": ["bor", "vel", "tan", "kir", "mos", "dal", "run", "fen", "gal", "sib", "dor", "lum"],
    "ru": ["бор", "вел", "тан", "кир", "мос", "дал", "рун", "фен", "гал", "сиб", "дор", "лум"],
    "uk": ["бор", "вел", "тан", "кир", "мос", "дал", "рун", "фен", "гал", "сиб", "дор", "лум"],
    "zh": ["博", "维", "坦", "基", "莫", "达", "伦", "芬", "加", "西", "多", "卢"],
}
QUALITIES = {
    "en": ["Silent", "Amber", "Crooked", "Winter", "Hollow", "Copper", "Northern", "Painted"],
    "ru": ["Тихий", "Янтарный", "Кривой", "Зимний", "Пустой", "Медный", "Северный", "Пёстрый"],
    "uk": ["Тихий", "Бурштиновий", "Кривий", "Зимовий", "Порожній", "Мідний", "Північний", "Сірий"],
    "zh": ["寂静的", "琥珀色的", "弯曲的", "冬天的", "空荡的", "铜色的", "北方的", "彩绘的"],
}
THINGS = {
    "en": ["Lighthouse", "Orchard", "Harbour", "Staircase", "Mill", "Observatory", "Ferry", "Kiln"],
    "ru": ["маяк", "сад", "порт", "мост", "завод", "вокзал", "паром", "музей"],
    "uk": ["маяк", "сад", "порт", "міст", "завод", "вокзал", "пором", "музей"],
    "zh": ["灯塔", "果园", "港口", "楼梯", "磨坊", "天文台", "渡船", "窑炉"],
}
TITLE = {
    "en": "The {quality} {thing} of {name}",
    "ru": "{quality} {thing} {name}",
    "uk": "{quality} {thing} {name}",
    "zh": "{name}{quality}{thing}",
}
HOUSES = {
    "en": ["Press", "Books"], "ru": ["Пресс", "Книга"], "uk": ["Прес", "Книга"],
    "zh": ["书局", "出版公司"],
}  # fmt: skip
TEXT = {
    "en": [
        "Fog comes over the water in the morning, and nobody in the village speaks of {name}.",
        "In the evening {person} counts the steps up to the gate and writes a letter to a friend.",
        "The road to the hills is long, and the snow stays on it until the end of April.",
    ],
    "ru": [
        "Утром с воды поднимается туман, и никто в деревне не говорит о месте {name}.",
        "Вечером {person} считает ступени до ворот и пишет письмо другу.",
        "Дорога в горы длинная, и снег лежит на ней до конца апреля.",
    ],
    "uk": [
        "Уранці з води підіймається туман, і ніхто в селі не говорить про місце {name}.",
        "Увечері {person} рахує сходи до брами й пише листа товаришеві.",
        "Дорога в гори довга, і сніг лежить на ній до кінця квітня.",
    ],
    "zh": [
        "早晨雾气从水面升起,村里没有人谈起{name}。",
        "傍晚{person}数着通往大门的台阶,给朋友写信。",
        "通往山里的路很长,积雪一直留到四月底。",
    ],
}
# Headings of a table in the language of a library.
LABELS = {
    "en": {
        "title": "title", "author": "author", "publisher": "publisher", "year": "year",
        "language": "language", "isbn": "isbn", "pages": "pages", "translator": "translator",
        "series": "series",
    },
    "ru": {
        "title": "название", "author": "автор", "publisher": "издательство", "year": "год",
        "language": "язык", "isbn": "ISBN", "pages": "страниц", "translator": "переводчик",
        "series": "серия",
    },
    "uk": {
        "title": "назва", "author": "автор", "publisher": "видавництво", "year": "рік",
        "language": "мова", "isbn": "ISBN", "pages": "сторінок", "translator": "перекладач",
        "series": "серія",
    },
    "zh": {
        "title": "书名", "author": "作者", "publisher": "出版社", "year": "年份",
        "language": "语言", "isbn": "ISBN", "pages": "页数", "translator": "译者",
        "series": "丛书",
    },
}  # fmt: skip
QUESTIONS = {
    "en": {
        "author": [
            "Who wrote {t}?", "Who is the author of “{t}”?",
            "By whom was {t} written?", "Name the writer of {t}.",
        ],
        "publisher": [
            "Who published {t}?", "What is the publisher of {t}?",
            "Which company brought out {t}?", "Which publishing house issued “{t}”?",
        ],
        "year": [
            "In what year was {t} published?", "When did {t} come out?",
            "When was {t} published?", "What is the year of publication of {t}?",
        ],
        "language": [
            "What language is {t} in?", "In which language is {t} written?",
            "Which language is “{t}” written in?", "What is the language of {t}?",
        ],
        "isbn": ["What is the ISBN of {t}?", "Which ISBN does {t} have?"],
        "pages": [
            "How many pages does {t} have?", "How long is {t}, in pages?",
            "How many pages are there in {t}?", "What is the number of pages of {t}?",
        ],
        "translator": ["Who translated {t}?", "Who is the translator of {t}?"],
        "series": ["Which series does {t} belong to?", "In what series did {t} appear?"],
    },
    "ru": {
        "author": [
            "Кто автор книги «{t}»?", "Кто написал «{t}»?",
            "Кем написана книга «{t}»?", "Назовите автора «{t}».",
        ],
        "publisher": [
            "Кто издал «{t}»?", "В каком издательстве вышла книга «{t}»?",
            "Какое издательство выпустило «{t}»?", "Кем издана книга «{t}»?",
        ],
        "year": [
            "В каком году издана книга «{t}»?", "Когда вышла книга «{t}»?",
            "Какой год издания у «{t}»?", "Когда была опубликована книга «{t}»?",
        ],
        "language": [
            "На каком языке книга «{t}»?", "Какой язык у «{t}»?",
            "На каком языке написана «{t}»?", "Назовите язык книги «{t}».",
        ],
        "isbn": ["Какой ISBN у книги «{t}»?", "Назовите ISBN «{t}»."],
        "pages": [
            "Сколько страниц в книге «{t}»?", "Сколько страниц у «{t}»?",
            "Какой объём у книги «{t}»?", "Каково число страниц в «{t}»?",
        ],
        "translator": ["Кто перевёл «{t}»?", "Кто переводчик книги «{t}»?"],
        "series": ["В какой серии вышла «{t}»?", "К какой серии относится «{t}»?"],
    },
    "uk": {
        "author": [
            "Хто автор книги «{t}»?", "Хто написав «{t}»?",
            "Ким написана книга «{t}»?", "Назвіть автора «{t}».",
        ],
        "publisher": [
            "Хто видав «{t}»?", "У якому видавництві вийшла книга «{t}»?",
            "Яке видавництво випустило «{t}»?", "Ким видана книга «{t}»?",
        ],
        "year": [
            "У якому році видано книгу «{t}»?", "Коли вийшла книга «{t}»?",
            "Який рік видання «{t}»?", "Коли було опубліковано «{t}»?",
        ],
        "language": [
            "Якою мовою книга «{t}»?", "Яка мова книги «{t}»?",
            "Якою мовою написана «{t}»?", "Назвіть мову книги «{t}».",
        ],
        "isbn": ["Який ISBN у книги «{t}»?", "Назвіть ISBN «{t}»."],
        "pages": [
            "Скільки сторінок у книзі «{t}»?", "Скільки сторінок має «{t}»?",
            "Який обсяг книги «{t}»?", "Яка кількість сторінок у «{t}»?",
        ],
        "translator": ["Хто переклав «{t}»?", "Хто перекладач книги «{t}»?"],
        "series": ["У якій серії вийшла «{t}»?", "До якої серії належить «{t}»?"],
    },
    "zh": {
        "author": [
            "《{t}》的作者是谁?", "谁写了《{t}》?", "《{t}》是谁写的?", "{t}是哪位作家的作品?",
        ],
        "publisher": [
            "《{t}》的出版社是哪家?", "《{t}》是哪个出版社出版的?",
            "谁出版了《{t}》?", "《{t}》由哪家出版社出版?",
        ],
        "year": [
            "《{t}》是哪一年出版的?", "《{t}》什么时候出版?",
            "《{t}》的出版年份是什么?", "《{t}》何时问世?",
        ],
        "language": [
            "《{t}》是用什么语言写的?", "《{t}》的语言是什么?",
            "《{t}》用哪种语言写成?", "《{t}》是什么语言的书?",
        ],
        "isbn": ["《{t}》的ISBN是多少?", "《{t}》的ISBN号是什么?"],
        "pages": [
            "《{t}》有多少页?", "《{t}》的页数是多少?",
            "《{t}》一共几页?", "《{t}》这本书有多少页?",
        ],
        "translator": ["《{t}》的译者是谁?", "谁翻译了《{t}》?"],
        "series": ["《{t}》属于哪个丛书?", "《{t}》是哪套丛书的?"],
    },
}  # fmt: skip
