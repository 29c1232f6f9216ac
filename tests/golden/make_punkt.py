#!/usr/bin/env python3
"""Writes punkt.txt beside itself: what NLTK's Punkt learns from a text, and where it ends the text's sentences.

The text is made here, from templates, with a fixed seed: abbreviations that are frequent and rare, initials, numbers, ellipses,
quotes and brackets behind full stops, and words that begin sentences.  It keeps to what NLTK and kiln agree to do; where they
differ is in docs/decisions/0053_sentences.md.  Lines: `abbreviations`, `starters` and `pairs` with their words, then each
paragraph, a bar at each boundary.  tests/text/test_text_punkt.c reads it.  Needs nltk; 3.10.4 wrote what is committed.
"""
import os
import random

from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

NAMES = ["Ashford", "Bell", "Carver", "Dunne", "Ellery", "Frost", "Grey", "Hale", "Ives", "Jarvis", "Knox", "Lowe"]
FIRMS = ["Barton", "Cole", "Dexter", "Harmon", "Lindley"]
VERBS = ["walked", "waited", "wrote", "spoke", "listened", "travelled", "worked", "rested"]
PLACES = ["the harbour", "the old mill", "a quiet street", "the north gate", "a small office", "the river"]
TEMPLATES = [
    "Mr. {name} {verb} near {place}.", "Mrs. {name} and Dr. {name} {verb} at {place}.",
    "The company of {firm} Inc. {verb} well.", "He joined {firm} Inc. The firm stood by {place}.",
    "She was born in the U.S. in {year}.", "They left the U.S. They came back in {year}.",
    "{initial}. {initial}. {name} {verb} there.", "A letter from {initial}. {name} arrived.",
    "It happened in {year}. Then {name} {verb}.", "He saw No. {n}, No. {n} and No. {n} there.",
    "The price was {n}.{n} or {n},000 in all.", "\"Where is {place}?\" asked {name}.", "\"Go away!\" The guard {verb}.",
    "He said \"Nay, sir.\" Then he {verb} by {place}.", "(It was late.) The lamps of {place} were out.",
    "They {verb}... And then it ended.", "She looked up... but {name} {verb}.", "We {verb} and we {verb} by {place}.",
    "Col. {name} met Capt. {name} of the St. Mary.", "It was open from 9 a.m. to 5 p.m. on weekdays.",
    "Was it {name}? It was!", "The parts, i.e. those of {firm}, were lost.", "In {year} the {ordinal} began.",
    "Not all was lost in the late war, well as it began and ended there.", "So said Gov. {name}, Lt. {name} and Prof. {name}.", "On the 3. of May {name} {verb}.",
    "He {verb} at {place}. In the end it mattered. But who knew?", "The co-op. of {firm} closed.",
]
RARE = ["The tools, brushes, nails, etcx., lay in {place}.", "The vol. of {year} was lost.",
        "They met sgtmaj. {name}; nobody {verb}.", "His rank (adjt.) was low.", "A whatnot. it is not."]


def paragraph(rng):
    sentences = []
    for _ in range(rng.randrange(2, 7)):
        template = rng.choice(RARE if rng.random() < 0.015 else TEMPLATES)
        while "{" in template:
            for key, make in (("name", lambda: rng.choice(NAMES)), ("firm", lambda: rng.choice(FIRMS)),
                              ("verb", lambda: rng.choice(VERBS)), ("place", lambda: rng.choice(PLACES)),
                              ("year", lambda: str(rng.randrange(1800, 2000))), ("n", lambda: str(rng.randrange(1, 99))),
                              ("initial", lambda: rng.choice("ABCDEFGHJKLM")), ("ordinal", lambda: "war")):
                template = template.replace("{" + key + "}", make(), 1)
        sentences.append(template)
    return " ".join(sentences)


def main():
    rng = random.Random(20)
    paragraphs = [paragraph(rng) for _ in range(160)]
    params = PunktTrainer("\n\n".join(paragraphs)).get_params()
    splitter = PunktSentenceTokenizer(params)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "punkt.txt"), "w", encoding="utf-8") as f:
        print("abbreviations", *sorted(params.abbrev_types), file=f)
        print("starters", *sorted(params.sent_starters), file=f)
        print("pairs", *sorted("+".join(pair) for pair in params.collocations), file=f)
        for p in paragraphs:
            print(" |".join(splitter.tokenize(p)), file=f)


if __name__ == "__main__":
    main()
