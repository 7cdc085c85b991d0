import { isSparse } from "./state/sparse-list.ts";

/** Why a value cannot be written as text for a model or as JSON. */
export class NotPlain extends Error {
  override readonly name = "NotPlain";
}

/** Deepest nesting that is written. */
const maxDepth = 200;

/** What content parts of other frameworks are called that are no text. */
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
 * A value as JSON without spaces, as `JSON.stringify()` writes it, and more exactly: a `bigint` is a
 * whole number of any size, a `Map` an object and a `Set` a list.
 *
 * @throws NotPlain, with the place, for what would be lost or changed in silence: `NaN` and infinite
 *   numbers, functions, symbols, circles and binary data.
 */
export function writePlainJson(value: unknown): string {
  return write(value, { place: "", depth: 0, isShown: false });
}

/**
 * The same with what another writer has for some of what is held.
 *
 * @param instead - A value's text; nothing where it is written as it is elsewhere.
 */
export function writeJsonWith(
  value: unknown,
  instead: (value: unknown) => string | undefined,
): string {
  return write(value, { place: "", depth: 0, isShown: false, instead });
}

/**
 * The same for a value that a model is shown.
 *
 * @throws NotPlain for pictures, sound and files as well, which other frameworks hold in parts of a message.
 */
export function writeShownJson(value: unknown): string {
  return write(value, { place: "", depth: 0, isShown: true });
}

/** Where a value stands in the whole that is written, and whether a model is shown it. */
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
      throw new NotPlain(`${named(place)} is a ${typeof value}, which is no data`);
  }
}

function writeObject(value: object, within: Within): string {
  const { place, depth, isShown } = within;
  const inner = (member: unknown, where: string): string =>
    write(member, { ...within, place: where, depth: depth + 1 });
  if (depth > maxDepth) {
    throw new NotPlain(`${named(place)} is nested too deeply, or holds itself`);
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

/** A part of a message as OpenAI, the AI SDK and MCP write them, told from a record with a type. */
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

/** A circle's place is as long as the nesting that is gone through: its beginning says which it is. */
function named(place: string): string {
  const shown = place.length > 60 ? `${place.slice(0, 60)}…` : place;
  return place === "" ? "it" : `its ${place.startsWith("[") ? `item ${shown}` : shown}`;
}
