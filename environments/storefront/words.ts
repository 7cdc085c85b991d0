import { hashText, type Random } from "./random.ts";

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

const onsets = "b d f g h j k l m n p r s t v w br dr gr tr st th".split(" ");
const vowels = "a e i o u ai ea".split(" ");
const codas = ["", "", "", "", "l", "n", "r", "s", "ck", "nd"];

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

  /** A person, such as `Mara Velling`. */
  person(): string {
    return `${this.#name(2)} ${this.#name(this.#random.between(2, 3))}`;
  }

  /** A product's name, such as `Velmo`. */
  product(): string {
    return this.#name(2);
  }

  /** A street and a number, such as `12 Tarsa Road`. */
  address(): string {
    return `${this.#random.between(1, 99)} ${this.#name(2)} ${this.#random.pick(roads)}`;
  }

  /** Five digits. */
  postcode(): string {
    return this.#fresh(() => String(this.#random.between(10_000, 99_999)));
  }

  /** A letter and four digits, such as `K4821`. */
  orderId(): string {
    return this.#fresh(
      () => this.#random.pick([..."ABCDEFGHKLMNPRSTW"]) + this.#random.between(1000, 9999),
    );
  }

  /** Three digits. */
  itemId(): string {
    return this.#fresh(() => String(this.#random.between(100, 999)));
  }

  /** A day, such as `14 May`. */
  date(): string {
    return `${this.#random.between(1, 30)} ${this.#random.pick(months)}`;
  }

  #name(syllableCount: number): string {
    return this.#fresh(() => {
      let name = "";
      for (let index = 0; index < syllableCount; index++) {
        name += this.#random.pick(onsets) + this.#random.pick(vowels);
      }
      name += this.#random.pick(codas);
      return name.charAt(0).toUpperCase() + name.slice(1);
    });
  }

  /** Draws until the word is of this split and new to this task. */
  #fresh(draw: () => string): string {
    for (;;) {
      const word = draw();
      if (splitOf(word) !== this.#split || this.#used.has(word)) continue;
      this.#used.add(word);
      return word;
    }
  }
}

/** The split that a name or number belongs to. */
export function splitOf(word: string): Split {
  return hashText(`storefront:${word}`) % 8 === 0 ? "test" : "train";
}
