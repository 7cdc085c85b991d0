import { isSparse } from "./state/sparse-list.ts";
import { shorten } from "../secrets/shorten.ts";

/** The error for a value that cannot be written as text for a model or as JSON, with the reason. */
export class NotPlain extends Error {
  override readonly name = "NotPlain";
}

/** Maximum nesting that is written. */
const maxDepth = 200;

/** Types of message parts in other frameworks that are not text. */
const mediaTypes = new Set([
  "image",
  "image_url",
  "input_image",
  "image-data",
  "image-url",
  "media",
  "audio",
  "input_audio",
  "video",
  "file",
  "file-data",
  "resource",
]);

/**
 * Returns a value as JSON without spaces, like `JSON.stringify()`, except that a `bigint` becomes an integer of any
 * size, a `Map` an object and a `Set` a list.
 *
 * @throws NotPlain, with the place, for values that JSON would lose or change: `NaN` and infinite numbers,
 * functions, symbols, circles and binary data.
 */
export function writePlainJson(value: unknown): string {
  return write(value, { place: "", depth: 0, isShown: false });
}

/**
 * Returns a value as JSON, with custom texts for some of the values in it.
 *
 * @param instead - Returns a value's text, or `undefined` to write it as usual.
 */
export function writeJsonWith(
  value: unknown,
  instead: (value: unknown) => string | undefined,
): string {
  return write(value, { place: "", depth: 0, isShown: false, instead });
}

/**
 * Returns a value as JSON for a model.
 *
 * @throws NotPlain also for pictures, sound and files, which other frameworks put in parts of a message.
 */
export function writeShownJson(value: unknown): string {
  return write(value, { place: "", depth: 0, isShown: true });
}

/** The place of a value within the root value, and the audience. */
interface Within {
  readonly place: string;
  readonly depth: number;
  readonly isShown: boolean;
  readonly instead?: (value: unknown) => string | undefined;
}

function write(value: unknown, within: Within): string {
  const { place, instead } = within;
  const text = instead?.(value);
  if (text !== undefined) return text;
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      if (Number.isFinite(value)) return JSON.stringify(value);
      throw new NotPlain(`${named(place)} is ${value}, which JSON does not have`);
    case "boolean":
    case "bigint":
      return String(value);
    case "undefined":
      return "null";
    case "object":
      return value === null ? "null" : writeObject(value, within);
    default:
      throw new NotPlain(`${named(place)} is a ${typeof value}, which is not data`);
  }
}

function writeObject(value: object, within: Within): string {
  const { place, depth, isShown } = within;
  const inner = (member: unknown, where: string): string =>
    write(member, { ...within, place: where, depth: depth + 1 });
  if (depth > maxDepth) {
    throw new NotPlain(`${named(place)} is nested too deeply, or contains itself`);
  }
  refuseMedia(value, place, isShown);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return inner((value.toJSON as () => unknown)(), place);
  }
  if (Array.isArray(value) || value instanceof Set) {
    if (Array.isArray(value) && isSparse(value)) {
      throw new NotPlain(`${named(place)} is a list of ${value.length} places, most of them empty`);
    }
    const items = Array.from(value as Iterable<unknown>, (item, index) =>
      inner(item, `${place}[${index}]`),
    );
    return `[${items.join(",")}]`;
  }
  if (value instanceof Promise) {
    throw new NotPlain(`${named(place)} is a promise (a forgotten await?)`);
  }
  if (value instanceof Error) throw new NotPlain(`${named(place)} is an Error (throw it instead?)`);
  const members = value instanceof Map ? value : Object.entries(value);
  const parts: string[] = [];
  for (const [key, member] of members as Iterable<readonly [unknown, unknown]>) {
    if (member === undefined) continue;
    const name = String(key);
    const where = place === "" ? name : `${place}.${name}`;
    parts.push(`${JSON.stringify(name)}:${inner(member, where)}`);
  }
  return `{${parts.join(",")}}`;
}

function refuseMedia(value: object, place: string, isShown: boolean): void {
  const isBinary = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  const isFile = typeof Blob === "function" && value instanceof Blob;
  const isPart = isShown && isMediaPart(value);
  if (!isBinary && !isFile && !isPart) return;
  const what = isPart
    ? `a part of type "${String((value as { type: unknown }).type)}"`
    : "binary data";
  throw new NotPlain(
    `${named(place)} is ${what}: there is no renderer for images, sound and files yet, only text`,
  );
}

/** True for a media part of a message as OpenAI, the AI SDK and MCP write it, rather than a record with a `type`. */
function isMediaPart(value: object): boolean {
  if (!("type" in value) || typeof value.type !== "string" || !mediaTypes.has(value.type)) {
    return false;
  }
  const payload = [
    "image_url",
    "data",
    "image",
    "url",
    "input_audio",
    "file",
    "mediaType",
    "mimeType",
  ];
  return payload.some((key) => key in value);
}

/** Shortens a circle's place, which grows with the nesting; its first part is enough to find it. */
function named(place: string): string {
  const shown = shorten(place, 60);
  return place === "" ? "it" : `its ${place.startsWith("[") ? `item ${shown}` : shown}`;
}
