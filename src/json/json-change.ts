import { isWellFormed } from "../text/well-formed.ts";
import { shorten } from "../secrets/shorten.ts";

/** A list or an object that is being scanned. */
interface Container {
  /** The keys so far, if it is an object. */
  readonly keys: Set<string> | undefined;
  /** The key or index of the current member. */
  member: string | number;
}

/**
 * Finds the first value that `JSON.parse()` changes or drops silently, and its place; returns `undefined` if all
 * values are kept. A number is unchanged if JavaScript has the same number: `1.0` is `1`.
 * @param text - Text that `JSON.parse()` has accepted; invalid JSON is not detected here.
 */
export function findJsonChange(text: string): string | undefined {
  const path: Container[] = [];
  let isKey = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    const inside = path.at(-1);
    switch (character) {
      case "{":
      case "[":
        isKey = character === "{";
        path.push({ keys: isKey ? new Set() : undefined, member: isKey ? "" : 0 });
        break;
      case "}":
      case "]":
        path.pop();
        isKey = false;
        break;
      case ",":
        isKey = inside?.keys !== undefined;
        if (typeof inside?.member === "number") inside.member += 1;
        break;
      case '"': {
        const end = endOfString(text, at);
        const found = isKey
          ? findKeyChange(text.slice(at, end), path)
          : findTextChange(text.slice(at, end), path);
        if (found !== undefined) return found;
        isKey = false;
        at = end - 1;
        break;
      }
      default: {
        if (character !== "-" && (character < "0" || character > "9")) break;
        numberPattern.lastIndex = at;
        const [literal = character] = numberPattern.exec(text) ?? [];
        const number = Number(literal);
        if (!isKept(literal, number)) {
          return (
            `${placeOf(path)} is ${shorten(literal, 60)}, which JavaScript would read as ${number}, ` +
            "expected a number that it can represent, or a text"
          );
        }
        at += literal.length - 1;
      }
    }
  }
  return undefined;
}

const numberPattern = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Numbers with at most this many digits are always exact. */
const safeDigits = 15;

function isKept(literal: string, number: number): boolean {
  if (!Number.isFinite(number)) return false;
  if (literal.length <= safeDigits || /[.eE]/.test(literal)) return true;
  return BigInt(literal) === BigInt(number);
}

/** Returns the index after the JSON string that starts at `start`. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === "\\") first -= 1;
  return (at - first) % 2 === 1;
}

function findKeyChange(literal: string, path: readonly Container[]): string | undefined {
  const inside = path.at(-1)!;
  const key = JSON.parse(literal) as string;
  const isNew = inside.keys!.size < inside.keys!.add(key).size;
  inside.member = key;
  if (!isNew) return `${placeOf(path)} occurs twice, expected one value`;
  return findTextChange(literal, path);
}

function findTextChange(literal: string, path: readonly Container[]): string | undefined {
  // Only an escape can express half of a surrogate pair, since the text was UTF-8.
  if (!/\\u[dD][89a-fA-F]/.test(literal)) return undefined;
  if (isWellFormed(JSON.parse(literal) as string)) return undefined;
  return `${placeOf(path)} contains half of a surrogate pair, which is neither a character nor valid UTF-8`;
}

/** A path such as `reset.seeds[2]`. */
function placeOf(path: readonly Container[]): string {
  const place = path
    .map(({ member }) => {
      if (typeof member === "number") return `[${member}]`;
      return /^[\w-]+$/.test(member) ? `.${member}` : `[${JSON.stringify(member)}]`;
    })
    .join("");
  return place === "" ? "it" : shorten(place.replace(/^\./, ""), 60);
}
