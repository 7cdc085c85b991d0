import type { Random } from "../../src/environment/seeded-random.ts";
import { hashText } from "../../src/values/hash-text.ts";

/** Which of two disjoint vocabularies a task is written in. */
export type Split = "train" | "test";

/** What a product may be. Both splits share them. */
export const kinds = [
  "lamp",
  "mug",
  "chair",
  "desk",
  "clock",
  "shelf",
  "bowl",
  "rug",
  "vase",
  "tray",
] as const;

/** What a product comes in. Both splits share them. */
export const colors = ["red", "blue", "green", "black", "white", "grey", "pink", "brown"] as const;

const months = ["March", "April", "May", "June", "July", "August"] as const;
const roads = ["Road", "Street", "Lane", "Hill", "Square"] as const;

const onsets = [..."bdfghjklmnprstvw"];
const vowels = [..."aeiou"];
const codas = [..."lnrs"];

/** Each syllable, the coda counting fastest: joining letters is most of what a task takes to draw. */
const syllables = onsets.flatMap((onset) =>
  vowels.flatMap((vowel) => codas.map((coda) => onset + vowel + coda)),
);
const firstSyllables = syllables.map((text) => text.charAt(0).toUpperCase() + text.slice(1));

/**
 * Draws names and numbers that belong to one split alone. A word belongs to the test split where
 * its hash says so (one in eight), so no list has to be kept and neither split can run out.
 */
export class Words {
  readonly #random: Random;
  readonly #split: Split;
  readonly #used = new Set<string>();

  constructor(random: Random, split: Split) {
    this.#random = random;
    this.#split = split;
  }

  /** A person, such as `Dorval Melnis`. */
  person(): string {
    return `${this.#name()} ${this.#name()}`;
  }

  /** A product's name, such as `Velmor`. */
  product(): string {
    return this.#name();
  }

  /** A street and a number, such as `12 Tarsan Road`. */
  address(): string {
    return `${this.#random.between(1, 99)} ${this.#name()} ${this.#random.pick(roads)}`;
  }

  /** Five digits. */
  postcode(): string {
    return this.#number(10_000, 99_999);
  }

  /** Four digits. */
  orderId(): string {
    return this.#number(1000, 9999);
  }

  /** Three digits. */
  itemId(): string {
    return this.#number(100, 999);
  }

  /** A day, such as `14 May`. */
  date(): string {
    return `${this.#random.between(1, 30)} ${this.#random.pick(months)}`;
  }

  /** Two syllables. Draws until the word can be taken, as `#number()` does. */
  #name(): string {
    for (;;) {
      const first = firstSyllables[this.#syllable()] as string;
      const word = first + (syllables[this.#syllable()] as string);
      if (this.#take(word)) return word;
    }
  }

  #number(low: number, high: number): string {
    for (;;) {
      const word = String(this.#random.between(low, high));
      if (this.#take(word)) return word;
    }
  }

  /** Draws the place of a syllable, letter by letter. */
  #syllable(): number {
    const onset = this.#random.between(0, onsets.length - 1);
    const vowel = this.#random.between(0, vowels.length - 1);
    const coda = this.#random.between(0, codas.length - 1);
    return (onset * vowels.length + vowel) * codas.length + coda;
  }

  /** Takes a word where it is of this split and new to this task. */
  #take(word: string): boolean {
    if (splitOf(word) !== this.#split || this.#used.has(word)) return false;
    this.#used.add(word);
    return true;
  }
}

/** The split that a name or number belongs to. */
export function splitOf(word: string): Split {
  return hashText(`storefront:${word}`) % 8 === 0 ? "test" : "train";
}
