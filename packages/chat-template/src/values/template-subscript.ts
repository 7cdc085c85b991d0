import { dictGet, numberOf } from "./template-compare.ts";
import { typeError, valueError } from "../template-error.ts";
import { codePointCount, isOneUnitEach } from "./template-iterate.ts";
import { textLike } from "./template-markup.ts";
import { Range } from "./template-range.ts";
import { undefinedError } from "./template-undefined.ts";
import type { TemplateList, TemplateValue } from "./template-value.ts";
import { isDict, isList, objectOf, textOf, Tuple, typeName, Undefined } from "./template-value.ts";

/** `value[key]` for an index or a dictionary's key; `undefined` if the value has no such item. */
export function itemOf(value: TemplateValue, key: TemplateValue): TemplateValue | undefined {
  if (isDict(value)) {
    return isList(key) || isDict(key) ? undefined : dictGet(value, key);
  }
  const index = numberOf(key);
  if (typeof index !== "bigint") return undefined;
  const items = isList(value) ? value : value instanceof Tuple ? value.items : undefined;
  if (items !== undefined) return items[absoluteIndex(index, items.length)];
  const text = textOf(value);
  if (text !== undefined) {
    const character = characterAt(text, index);
    return character === undefined ? undefined : textLike(value, character);
  }
  const object = objectOf(value);
  return object?.itemAt?.(absoluteIndex(index, object.length?.() ?? 0));
}

/** Converts a negative index. An index before the start becomes one that no sequence has. */
function absoluteIndex(index: bigint, length: number): number {
  const absolute = index < 0n ? Number(index) + length : Number(index);
  return absolute < 0 ? Number.MAX_SAFE_INTEGER : absolute;
}

function characterAt(text: string, index: bigint): string | undefined {
  if (isOneUnitEach(text)) return text[absoluteIndex(index, text.length)];
  return [...text][absoluteIndex(index, codePointCount(text))];
}

/** The bounds of a slice; `null` if the template omits one. */
interface SliceBounds {
  readonly start: TemplateValue;
  readonly stop: TemplateValue;
  readonly step: TemplateValue;
}

/**
 * `value[start:stop:step]`.
 *
 * @throws TemplateError `TypeError` if the value is not a sequence or a bound not an integer.
 */
export function sliceOf(value: TemplateValue, bounds: SliceBounds): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  if (isList(value)) return sliceItems(value, bounds);
  if (value instanceof Tuple) return new Tuple(sliceItems(value.items, bounds));
  if (value instanceof Range) {
    return value.slice((length) => resolveBounds(bounds, length));
  }
  const text = textOf(value);
  if (text !== undefined) return textLike(value, sliceText(text, bounds));
  if (isDict(value)) throw typeError("unhashable type: 'slice'");
  throw typeError(`'${typeName(value)}' object is not subscriptable`);
}

function sliceText(text: string, bounds: SliceBounds): string {
  const characters = isOneUnitEach(text) ? text : [...text];
  const { start, stop, step } = resolveBounds(bounds, characters.length);
  if (step === 1) {
    const part = characters.slice(start, Math.max(start, stop));
    return typeof part === "string" ? part : part.join("");
  }
  return stepped(characters, { start, stop, step }).join("");
}

function sliceItems(items: TemplateList, bounds: SliceBounds): TemplateList {
  const { start, stop, step } = resolveBounds(bounds, items.length);
  if (step === 1) return items.slice(start, Math.max(start, stop));
  return stepped(items, { start, stop, step });
}

interface Steps {
  readonly start: number;
  readonly stop: number;
  readonly step: number;
}

function stepped<T>(items: ArrayLike<T>, { start, stop, step }: Steps): T[] {
  const picked: T[] = [];
  for (let index = start; step > 0 ? index < stop : index > stop; index += step) {
    picked.push(items[index] as T);
  }
  return picked;
}

function resolveBounds(bounds: SliceBounds, length: number): Steps {
  const step = boundOf(bounds.step) ?? 1;
  if (step === 0) throw valueError("slice step cannot be zero");
  const lowest = step > 0 ? 0 : -1;
  const highest = step > 0 ? length : length - 1;
  const clamp = (bound: number) =>
    Math.min(highest, Math.max(lowest, bound < 0 ? bound + length : bound));
  const start = boundOf(bounds.start);
  const stop = boundOf(bounds.stop);
  return {
    start: start === undefined ? (step > 0 ? lowest : highest) : clamp(start),
    stop: stop === undefined ? (step > 0 ? highest : lowest) : clamp(stop),
    step,
  };
}

function boundOf(bound: TemplateValue): number | undefined {
  if (bound === null) return undefined;
  const number = numberOf(bound);
  if (typeof number === "bigint") return Number(number);
  throw typeError("slice indices must be integers or None or have an __index__ method");
}
