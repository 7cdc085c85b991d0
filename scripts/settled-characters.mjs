// Writes src/tokenizer/byte-pair/settled-runs.ts: the characters on which releases of Unicode agree, so that
// Node.js and the native tokenizer library classify and normalise them alike.
//
//   npm install --no-save --prefix FOLDER @unicode/unicode-{9,15,17}.0.0
//   node scripts/settled-characters.mjs FOLDER/node_modules
//
// A character is settled if Unicode 15 knows it and Unicode 17 classifies it alike. The native library's patterns
// follow Unicode 16. The library normalises by Unicode 9, so a character that normalisation may change, combine or
// move must be of that age.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [packages] = process.argv.slice(2);
if (packages === undefined) throw new Error("Expected the folder of the packages @unicode/…");

async function pointsOf(version, property) {
  const file = `@unicode/unicode-${version}.0.0/${property}/code-points.mjs`;
  return (await import(pathToFileURL(path.resolve(packages, file)).href)).default;
}

/** The categories that patterns of tokenizers distinguish. The index is the number of the kind. */
const kinds = [
  [],
  ["Uppercase_Letter"],
  ["Lowercase_Letter"],
  ["Titlecase_Letter"],
  ["Modifier_Letter"],
  ["Other_Letter"],
  ["Number"],
  ["Mark"],
  ["Punctuation"],
  ["Symbol"],
  ["Control", "Format", "Private_Use"],
];
const lastWordKind = 6;
const mark = 7;
const whiteSpace = kinds.length;
const limit = 0x11_0000;

/** Returns the kind of each code point. Unassigned ones and halves of surrogate pairs have 0. */
async function kindsIn(version) {
  const found = new Uint8Array(limit);
  for (const [kind, categories] of kinds.entries()) {
    for (const category of categories) {
      const points = await pointsOf(version, `General_Category/${category}`);
      for (const point of points) found[point] = kind;
    }
  }
  const spaces = await pointsOf(version, "Binary_Property/White_Space");
  for (const point of spaces) found[point] = whiteSpace;
  return found;
}

const [early, late] = [await kindsIn(15), await kindsIn(17)];
const oldest = new Set(await pointsOf(9, "Binary_Property/Assigned"));

/** Characters that normalisation to NFC may change, combine with others, or move. */
const composing = new Set();
/** The canonical decompositions of single characters. */
const decompositions = new Map();
for (let point = 0; point < limit; point++) {
  if (point >= 0xd800 && point <= 0xdfff) continue;
  const character = String.fromCodePoint(point);
  const parts = [...character.normalize("NFD")].map((part) => part.codePointAt(0));
  if (parts.length > 1 || parts[0] !== point) decompositions.set(point, parts);
  if (late[point] === mark || character.normalize("NFC") !== character) composing.add(point);
  for (const part of parts.slice(1)) composing.add(part);
}

const isSettled = (point) =>
  early[point] !== 0 &&
  early[point] === late[point] &&
  (!composing.has(point) || oldest.has(point));

for (const [point, parts] of decompositions) {
  if (!isSettled(point) && parts.every(isSettled)) {
    throw new Error(`U+${point.toString(16)} is not settled, but all characters that compose it`);
  }
}

/** `U`: unsettled, `W`: a letter or number, `O`: others. Small letters for composing ones. */
function letterOf(point) {
  if (!isSettled(point)) return "U";
  const letter = late[point] <= lastWordKind ? "W" : "O";
  return composing.has(point) ? letter.toLowerCase() : letter;
}

let runs = "";
let count = 0;
for (let from = 0, to = 0; from < limit; from = to) {
  const letter = letterOf(from);
  while (to < limit && letterOf(to) === letter) to += 1;
  if (letter !== "U") count += to - from;
  runs += to - from === 1 ? letter : `${letter}${to - from}`;
}
const file = fileURLToPath(new URL("../src/tokenizer/byte-pair/settled-runs.ts", import.meta.url));
writeFileSync(
  file,
  [
    "// Written by scripts/settled-characters.mjs. Do not edit.",
    "",
    "/**",
    " * The classes of all code points in order: a letter and the length of the run, if it is not 1. `U`: unsettled",
    " * characters, `W`: settled letters and numbers, `O`: other settled characters. Small letters: characters that",
    " * normalisation may change, combine with others, or move.",
    " */",
    "export const settledRuns: string = [",
    ...runs.match(/.{1,96}/g).map((line) => `  "${line}",`),
    '].join("");',
    "",
  ].join("\n"),
);
process.stdout.write(`${count} settled characters in ${runs.length} letters\n`);
