import { typeError } from "../template-error.ts";
import { equals } from "../values/template-compare.ts";
import { BuiltinFunction } from "./template-function.ts";
import type {
  CallArguments,
  TemplateList,
  TemplateObject,
  TemplateValue,
} from "../values/template-value.ts";
import { Tuple, Undefined } from "../values/template-value.ts";

/** Renders the loop's body again for the children of an item. */
type LoopRecursion = (items: TemplateValue, depth: number) => string;

/** The variable `loop`, which also provides the items. */
export class Loop implements TemplateObject {
  readonly pythonType = "LoopContext";
  readonly qualifiedType = "jinja2.runtime.LoopContext";
  readonly #depth: number;
  readonly #recursion: LoopRecursion | undefined;
  /** A list is immutable and is read by index: an iterator would make an object for each item. */
  readonly #list: TemplateList | undefined;
  #items: Iterator<TemplateValue>;
  #length: number | undefined;
  /** -1 before the first item. */
  #index = -1;
  #previous: TemplateValue | undefined;
  #current: TemplateValue | undefined;
  /** The next item, if it was read ahead. */
  #ahead: TemplateValue | undefined;
  #lastChanged: TemplateValue | undefined;

  constructor(
    items: TemplateList | Iterable<TemplateValue>,
    options: {
      readonly length: number | undefined;
      readonly depth: number;
      readonly recursion: LoopRecursion | undefined;
    },
  ) {
    this.#list = Array.isArray(items) ? (items as TemplateList) : undefined;
    this.#items = items[Symbol.iterator]();
    this.#length = options.length;
    this.#depth = options.depth;
    this.#recursion = options.recursion;
  }

  /** Advances to the next item and returns it; `undefined` at the end. */
  next(): TemplateValue | undefined {
    const item = this.#peek();
    if (item === undefined) return undefined;
    this.#ahead = undefined;
    this.#index += 1;
    this.#previous = this.#current;
    this.#current = item;
    return item;
  }

  length(): number {
    if (this.#length === undefined) {
      const rest = Array.from({ [Symbol.iterator]: () => this.#items });
      this.#items = rest[Symbol.iterator]();
      this.#length = rest.length + this.#index + 1 + (this.#ahead === undefined ? 0 : 1);
    }
    return this.#length;
  }

  attribute(name: string): TemplateValue | undefined {
    switch (name) {
      case "index":
        return BigInt(this.#index + 1);
      case "index0":
        return BigInt(this.#index);
      case "first":
        return this.#index === 0;
      case "last":
        return this.#peek() === undefined;
      case "length":
        return BigInt(this.length());
      case "revindex":
        return BigInt(this.length() - this.#index);
      case "revindex0":
        return BigInt(this.length() - this.#index - 1);
      case "previtem":
        return this.#index === 0 ? absent("there is no previous item") : this.#previous;
      case "nextitem":
        return this.#peek() ?? (this.#ahead === null ? null : absent("there is no next item"));
      case "depth":
        return BigInt(this.#depth + 1);
      case "depth0":
        return BigInt(this.#depth);
      case "cycle":
        return new BuiltinFunction((args) => this.#cycle(args));
      case "changed":
        return new BuiltinFunction((args) => this.#changed(args));
      default:
        return undefined;
    }
  }

  /** `loop(children)` in a recursive loop. */
  call({ positional }: CallArguments): TemplateValue {
    if (this.#recursion === undefined) {
      throw typeError("The loop must have the 'recursive' marker to be called recursively.");
    }
    return this.#recursion(positional[0] ?? null, this.#depth + 1);
  }

  repr(): string {
    return `<LoopContext ${this.#index + 1}/${this.length()}>`;
  }

  #peek(): TemplateValue | undefined {
    if (this.#ahead !== undefined) return this.#ahead;
    if (this.#list !== undefined) {
      this.#ahead = this.#list[this.#index + 1];
    } else {
      const step = this.#items.next();
      this.#ahead = step.done === true ? undefined : step.value;
    }
    return this.#ahead;
  }

  #cycle({ positional }: CallArguments): TemplateValue {
    const item = positional[this.#index % Math.max(1, positional.length)];
    if (item === undefined) throw typeError("no items for cycling given");
    return item;
  }

  #changed({ positional }: CallArguments): boolean {
    const value = new Tuple(positional);
    if (this.#lastChanged !== undefined && equals(this.#lastChanged, value)) return false;
    this.#lastChanged = value;
    return true;
  }
}

function absent(hint: string): Undefined {
  return new Undefined({ hint });
}
