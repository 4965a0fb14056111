"""The text of the example documents: plain ASCII prose on printing and reading machines, written for this project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Title:
    text: str


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Para:
    text: str


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[str, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first row is its head. `widths` are shares of the column's width."""

    rows: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...]


Block = Title | Heading | Para | Items | Grid

#: One page, two columns under a common title.
REPORT: tuple[Block, ...] = (
    Title("How a page is read"),
    Heading("The task"),
    Para(
        "A parser looks at the picture of a page and writes down what it says, in the order in which a person "
        "would read it. Words are only half of the work. It must also see which line is a heading and where a "
        "list begins."
    ),
    Heading("Why it is slow"),
    Para("The model writes one token at a time. For each of them all its weights travel through memory once."),
    Para("A light tool has often read the words before, but"),
    Items(("it mixes columns,", "it loses tables,", "it misreads letters.")),
    Heading("The remedy"),
    Para(
        "Let the light tool guess and the model judge. One pass checks many guessed words. Those that the "
        "model would have written stay; at the first that differs it puts its own and goes on."
    ),
    Para("Nothing the model did not choose reaches the page."),
    Heading("Dates"),
    Grid(
        (
            ("Year", "Craft", "Place"),
            ("1455", "Type", "Mainz"),
            ("1796", "Stone", "Munich"),
            ("1814", "Steam", "London"),
            ("1886", "Line", "New York"),
        ),
        (0.25, 0.31, 0.44),
    ),
    Para("The craft changed often; the page itself did not."),
)

#: Ten pages, one column.
TEN_PAGES: tuple[tuple[Block, ...], ...] = (
    (
        Title("A short history of the page"),
        Para(
            "Long before there were machines that read, there were machines that wrote. This booklet follows the "
            "page from the scribe to the scanner in ten short chapters."
        ),
        Heading("1. Scribes"),
        Para(
            "For a thousand years a book was copied by hand, one letter after another. A practised scribe filled "
            "three or four leaves in a day. Mistakes crept in, and each copy handed them on to the next. Readers "
            "knew this, and careful ones compared two copies before they trusted either."
        ),
        Para(
            "The scribe gave us much of what a page still is: margins, columns, capitals at the start of a "
            "chapter, and notes in a smaller hand at the foot."
        ),
    ),
    (
        Heading("2. Movable type"),
        Para(
            "In the eleventh century Bi Sheng cut characters in soft clay and baked them hard. Korean printers "
            "cast theirs in bronze; a book of 1377 made in this way has survived. In Mainz, about 1450, Johann "
            "Gutenberg brought together four things that were each known in some form:"
        ),
        Items(
            (
                "a mould that cast letters of equal height,",
                "a metal of lead, tin and antimony,",
                "an ink of oil and soot,",
                "and a press that had served for wine.",
            )
        ),
        Para(
            "His Bible has two columns of forty-two lines. About one hundred and eighty copies were made, and "
            "nearly fifty of them are still known."
        ),
        Para(
            "The letters were made in steps. A punch was cut in steel, the punch was driven into copper, and the "
            "copper became the floor of the mould. From one such matrix a founder could cast the same letter "
            "thousands of times, and every cast would stand as high as its neighbours."
        ),
    ),
    (
        Heading("3. The small book"),
        Para(
            "Aldus Manutius of Venice made books that fitted into a pocket. In 1501 he set a whole Virgil in a "
            "slanted letter that saved space, and italic type was born. He also put the semicolon to the use that "
            "we know."
        ),
        Para(
            "William Caxton brought printing to Westminster in 1476. He worried about spelling: in the north they "
            "said eggs, in the south they said eyren, and nobody could please both. Print chose for them, slowly, "
            "and the choice has held."
        ),
        Grid(
            (
                ("City", "First press", "Known for"),
                ("Mainz", "1450", "the Bible"),
                ("Venice", "1469", "small books"),
                ("London", "1476", "romances"),
                ("Krakow", "1473", "almanacs"),
            ),
            (0.3, 0.34, 0.36),
        ),
    ),
    (
        Heading("4. Iron and steam"),
        Para(
            "The wooden press changed little in three hundred and fifty years. Two strong men could pull some two "
            "hundred sheets in an hour. About 1800 Lord Stanhope built one of iron, which needed less strength "
            "and printed a whole sheet with one pull."
        ),
        Para(
            "On 29 November 1814 the Times of London told its readers that the paper in their hands had been "
            "printed by steam. Koenig's machine made eleven hundred sheets in an hour. The pressmen feared for "
            "their work; the owner had set up the machine in secret and promised to keep them."
        ),
        Para(
            "Speed changed what was printed. News grew stale within a day, novels came out in weekly parts, and "
            "people who had owned one book now owned a shelf of them. Schools could hand the same reader to every "
            "child in the room, and libraries began to lend."
        ),
        Para("Paper from endless rolls and faster cylinders followed. By 1900 a newspaper was a thing of one penny."),
    ),
    (
        Heading("5. Hot metal"),
        Para(
            "Setting type by hand remained the slow step. In 1886 the New York Tribune tried a machine by Ottmar "
            "Mergenthaler that cast a whole line at once. One person at its keyboard did the work of five."
        ),
        Para("To set a line of type the operator would:"),
        Items(
            (
                "press the keys, each of which let one mould fall,",
                "spread the spaces until the line was full,",
                "send it to the pot of molten metal,",
                "and watch the moulds climb back to their places.",
            ),
            numbered=True,
        ),
        Para(
            "An error meant a new line. The habit of filling a spoiled line by running a finger down the first "
            "two rows of keys gave the world the words etaoin shrdlu."
        ),
    ),
    (
        Heading("6. Stone, film and light"),
        Para(
            "In 1796 Alois Senefelder found that greasy ink stays off wet stone. His lithography printed from a "
            "flat face, without raised letters. A century later the picture was moved from plate to rubber and "
            "from rubber to paper, and offset printing was there."
        ),
        Para(
            "After 1950 letters no longer had to be cast. A lamp flashed through a spinning disc of film, and the "
            "page grew on light-sensitive paper. Type lost its weight. It also lost, for a time, its evenness: "
            "letters could now be squeezed closer than metal had ever allowed."
        ),
        Heading("What was gained"),
        Items(
            (
                "Pictures and words on one plate.",
                "Any size of letter from one disc.",
                "Corrections with a knife and some wax.",
            )
        ),
        Para(
            "What was lost took longer to notice. A compositor had read every word upside down and with care; the "
            "keyboard and the lamp read nothing at all."
        ),
    ),
    (
        Heading("7. The page as a program"),
        Para(
            "Donald Knuth did not like the proofs of his book and in 1978 gave the world TeX, which breaks a "
            "paragraph into lines by weighing all of its breaks together. In 1984 a page became a program that "
            "the printer itself runs: PostScript. In 1993 the program was frozen into a file that looks the same "
            "wherever it is opened."
        ),
        Grid(
            (
                ("Year", "Name", "Idea"),
                ("1978", "TeX", "boxes and glue"),
                ("1984", "PostScript", "a page is a program"),
                ("1985", "Desktop", "what you see"),
                ("1993", "PDF", "the frozen page"),
            ),
            (0.2, 0.32, 0.48),
        ),
        Para(
            "That file knows where every letter stands. It does not have to know what a word, a column or a table is."
        ),
    ),
    (
        Heading("8. Machines that read"),
        Para(
            "The wish to let a machine read is older than the computer. Before the first war an apparatus in "
            "London turned print into tones for blind readers. In 1929 a patent described a wheel of cut-out "
            "letters: the one that let no light through was the letter on the page."
        ),
        Para(
            "Banks came next. They needed numbers that could not be mistaken, so they asked for letters that "
            "suited the machine instead of the eye. By 1976 a desk-sized device could read a common book aloud, "
            "in whatever type it had been set."
        ),
        Para(
            "The method was at first to lay a stored letter over the one on the page and to count how much of it "
            "was covered. Later machines looked for strokes, loops and crossings, and later still they learned "
            "from examples what nobody had been able to write down as a rule."
        ),
        Para("Every one of these machines saw letters. None of them saw a page."),
    ),
    (
        Heading("9. From letters to pages"),
        Para("A reader of pages has to answer questions that a reader of letters never meets:"),
        Items(
            (
                "Which of two columns comes first?",
                "Is this line a heading or a short sentence?",
                "Does this number belong to the row above?",
                "Is the small print a note or a caption?",
            )
        ),
        Para(
            "The usual answer was a chain of small tools, each with its own task and its own mistakes. What the "
            "first one lost, the last one could not find again. A model that looks at the whole picture needs no "
            "chain, but it pays for that with time, since it writes its answer one token after another."
        ),
    ),
    (
        Heading("10. Draft and judge"),
        Para(
            "Newsrooms once had a rule for haste: the junior writes, the editor reads. Reading is faster than "
            "writing, and the editor's name is on the door. A sentence that is right costs no more than a glance. "
            "One that is wrong is struck out at the first wrong word and set straight."
        ),
        Para(
            "A fast parser can work in the same way. The chain of small tools is the junior and the large model "
            "is the editor. The text that leaves the house is the text the editor would have written alone, word "
            "for word; it is only ready sooner."
        ),
        Para("With that the page has come full circle: two readers compare their copies before they trust either."),
    ),
)
