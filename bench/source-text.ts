import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** Returns the TypeScript sources below a folder as one ASCII text, as a coding agent reads them. */
export function readSources(folder: string): string {
  const text = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.includes("fixture"))
    .toSorted()
    .map((name) => readFileSync(path.join(folder, name), "utf8"))
    .join("\n");
  return toAscii(text);
}

/** Replaces all characters except printable ASCII, tabs and line feeds. */
export function toAscii(text: string): string {
  return text.replaceAll(/[^\t\n -~]/g, "?");
}

/** Characters beyond ASCII that tools print: box drawing, emoji and accents. */
const marks = ["✓", "│", "🚀", "naïve", "→", "🤖", "├──"];

/** Puts a character beyond ASCII before every fiftieth line. */
export function withOtherCharacters(text: string): string {
  return text
    .split("\n")
    .map((line, at) => (at % 50 === 7 ? `${marks[at % marks.length]} ${line}` : line))
    .join("\n");
}
