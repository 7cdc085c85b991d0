import type { Random } from "../../src/environment/seeded-random.ts";
import { hashText } from "../../src/values/hash-text.ts";

/** The split of a task. The two splits have disjoint vocabularies. */
export type Split = "train" | "test";

/** Kinds of products, shared by both splits. */
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

/** Colors of products, shared by both splits. */
export const colors = ["red", "blue", "green", "black", "white", "grey", "pink", "brown"] as const;

const months = ["March", "April", "May", "June", "July", "August"] as const;
const roads = ["Road", "Street", "Lane", "Hill", "Square"] as const;

const onsets = [..."bdfghjklmnprstvw"];
const vowels = [..."aeiou"];
const codas = [..."lnrs"];

/** Each syllable, in order of onset, vowel and coda: joining letters takes most of the time of drawing a task. */
const syllables = onsets.flatMap((onset) =>
  vowels.flatMap((vowel) => codas.map((coda) => onset + vowel + coda)),
);
const firstSyllables = syllables.map((text) => text.charAt(0).toUpperCase() + text.slice(1));

/**
 * Draws names and numbers that belong to one split alone. One word in eight belongs to the test split, decided by
 * its hash, so no list is needed and neither split can run out.
 */
export class Words {
  readonly #random: Random;
  readonly #split: Split;
  readonly #used = new Set<string>();

  constructor(random: Random, split: Split) {
    this.#random = random;
    this.#split = split;
  }

  /** A person's name, such as `Dorval Melnis`. */
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

  /** Draws two syllables until the word can be used, like `#number()`. */
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

  /** Draws the index of a syllable, letter by letter. */
  #syllable(): number {
    const onset = this.#random.between(0, onsets.length - 1);
    const vowel = this.#random.between(0, vowels.length - 1);
    const coda = this.#random.between(0, codas.length - 1);
    return (onset * vowels.length + vowel) * codas.length + coda;
  }

  /** Uses a word if it belongs to this split and is new to this task. */
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
