import { dictGet, dictSet, equals } from "./template-compare.ts";
import { valueError } from "../template-error.ts";
import type { BoundArguments, Signature } from "../evaluate/template-function.ts";
import { signatureOf } from "../evaluate/template-function.ts";
import { iterate, toList } from "./template-iterate.ts";
import { sliceOf } from "./template-subscript.ts";
import { reprOf } from "./template-text.ts";
import type {
  TemplateDict,
  TemplateList,
  TemplateObject,
  TemplateValue,
} from "./template-value.ts";
import { isDict, Tuple } from "./template-value.ts";

/** A method of a list, tuple or dictionary. */
interface ContainerMethod<Owner> {
  readonly signature: Signature;
  run(owner: Owner, args: BoundArguments): TemplateValue;
}

/** The result of `dict.keys()`, `dict.values()` and `dict.items()`. */
class DictView implements TemplateObject {
  readonly pythonType: "dict_keys" | "dict_values" | "dict_items";
  readonly #dict: TemplateDict;

  constructor(dict: TemplateDict, pythonType: DictView["pythonType"]) {
    this.#dict = dict;
    this.pythonType = pythonType;
  }

  iterate(): Iterator<TemplateValue> {
    if (this.pythonType === "dict_keys") return this.#dict.keys();
    return this.pythonType === "dict_values" ? this.#dict.values() : itemTuples(this.#dict);
  }

  length(): number {
    return this.#dict.size;
  }

  repr(): string {
    return `${this.pythonType}(${reprOf(toList(this))})`;
  }
}

/** A dictionary's keys and values as tuples. */
export function* itemTuples(dict: TemplateDict): IterableIterator<Tuple> {
  for (const entry of dict) yield new Tuple(entry);
}

function method<Owner>(
  signature: string,
  run: ContainerMethod<Owner>["run"],
): readonly [string, ContainerMethod<Owner>] {
  const parsed = signatureOf(signature);
  return [parsed.name, { signature: parsed, run }];
}

/** The methods of `dict` that do not change it. */
export const dictMethods: ReadonlyMap<string, ContainerMethod<TemplateDict>> = new Map([
  method<TemplateDict>("copy", (dict) => dict),
  method("fromkeys keys value?", (_dict, [keys, value]) => {
    const dict = new Map<TemplateValue, TemplateValue>();
    for (const key of iterate(keys as TemplateValue)) dictSet(dict, key, value ?? null);
    return dict;
  }),
  method("get key default?", (dict, [key, fallback]) => {
    const value = dictGet(dict, key as TemplateValue);
    return value === undefined ? (fallback ?? null) : value;
  }),
  method("items", (dict) => new DictView(dict, "dict_items")),
  method("keys", (dict) => new DictView(dict, "dict_keys")),
  method("values", (dict) => new DictView(dict, "dict_values")),
]);

/** Methods that change a dictionary, which the sandbox refuses. */
export const unsafeDictMethods: ReadonlySet<string> = new Set([
  "clear",
  "pop",
  "popitem",
  "setdefault",
  "update",
]);

function count(items: TemplateList, [wanted]: BoundArguments): bigint {
  return BigInt(items.filter((item) => equals(item, wanted as TemplateValue)).length);
}

function index(owner: TemplateList | Tuple, [wanted, start, stop]: BoundArguments): bigint {
  const items = toList(owner);
  const bounds = { start: start ?? null, stop: stop ?? null, step: null };
  const window = sliceOf(items, bounds) as TemplateList;
  const found = window.findIndex((item) => equals(item, wanted as TemplateValue));
  if (found < 0) {
    const what = owner instanceof Tuple ? "tuple.index(x): x not in tuple" : undefined;
    throw valueError(what ?? `${reprOf(wanted as TemplateValue)} is not in list`);
  }
  const first = typeof start === "bigint" ? Number(start) : 0;
  return BigInt(found + (first < 0 ? Math.max(0, first + items.length) : first));
}

/** The methods of `list` that do not change it. */
export const listMethods: ReadonlyMap<string, ContainerMethod<TemplateList>> = new Map([
  method<TemplateList>("copy", (list) => list),
  method("count value", count),
  method("index value start? stop?", index),
]);

/** Methods that change a list, which the sandbox refuses. */
export const unsafeListMethods: ReadonlySet<string> = new Set([
  "append",
  "clear",
  "extend",
  "insert",
  "pop",
  "remove",
  "reverse",
  "sort",
]);

/** The methods of `tuple`. */
export const tupleMethods: ReadonlyMap<string, ContainerMethod<Tuple>> = new Map([
  method<Tuple>("count value", (tuple, args) => count(tuple.items, args)),
  method("index value start? stop?", index),
]);

/**
 * `dict(…)`: from a dictionary or pairs, and named members.
 *
 * @throws TemplateError `TypeError` or `ValueError` if the items are not pairs.
 */
export function makeDict(
  source: TemplateValue | undefined,
  named: ReadonlyMap<string, TemplateValue>,
): TemplateDict {
  const dict = new Map<TemplateValue, TemplateValue>();
  if (source !== undefined && isDict(source)) {
    for (const [key, value] of source) dict.set(key, value);
  } else if (source !== undefined) {
    toList(source).forEach((pair, position) => {
      const items = toList(pair);
      if (items.length !== 2) {
        throw valueError(
          `dictionary update sequence element #${position} has length ${items.length}; 2 is required`,
        );
      }
      dictSet(dict, items[0] as TemplateValue, items[1] as TemplateValue);
    });
  }
  for (const [key, value] of named) dict.set(key, value);
  return dict;
}
