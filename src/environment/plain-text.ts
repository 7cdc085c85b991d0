/** Why a value cannot be written as text for a model or as JSON. */
export class NotPlain extends Error {
  override readonly name = "NotPlain";
}

/** Deepest nesting that is written. */
const maxDepth = 200;

/** What content parts of other frameworks are called that are no text. */
const mediaTypes = new Set([
  ...["image", "image_url", "input_image", "image-data", "image-url", "media"],
  ...["audio", "input_audio", "video", "file", "file-data", "resource"],
]);

/**
 * A value as JSON without spaces, as `JSON.stringify()` writes it, and more exactly: a `bigint` is a
 * whole number of any size, a `Map` an object and a `Set` a list.
 *
 * @throws NotPlain, with the place, for what would be lost or changed in silence: `NaN` and infinite
 *   numbers, functions, symbols, circles, and pictures, sound and files.
 */
export function writePlainJson(value: unknown): string {
  return write(value, "", 0);
}

function write(value: unknown, place: string, depth: number): string {
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
      return value === null ? "null" : writeObject(value, place, depth);
    default:
      throw new NotPlain(`${named(place)} is a ${typeof value}, which is no data`);
  }
}

function writeObject(value: object, place: string, depth: number): string {
  if (depth > maxDepth) {
    throw new NotPlain(`${named(place)} is nested too deeply, or holds itself`);
  }
  refuseMedia(value, place);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return write((value.toJSON as () => unknown)(), place, depth + 1);
  }
  if (Array.isArray(value) || value instanceof Set) {
    const items = Array.from(value as Iterable<unknown>, (item, index) =>
      write(item, `${place}[${index}]`, depth + 1),
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
    parts.push(`${JSON.stringify(name)}:${write(member, where, depth + 1)}`);
  }
  return `{${parts.join(",")}}`;
}

function refuseMedia(value: object, place: string): void {
  const isBinary = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
  const isFile = typeof Blob === "function" && value instanceof Blob;
  const isPart = isMediaPart(value);
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
