import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** Words with which a doc comment must not begin: it begins with a verb or a noun phrase. */
const opening =
  /^(?:What|Whether|Whoever|Whatever|Who|Where|How|Why|There may|By whom|With which|In which|Of what|To whom)\b/;

/** Words that documentation in plain English hardly ever uses. */
const odd =
  /\b(?:whoever|whatever|nobody|somebody|whom|whose|told|tells|behind|comes to|goes on|is none|are none|where it|where they|where that|where nothing|as long as|anew|of theirs)\b/gi;

const most = { openings: 0.03, oddWords: 0.0015, sentenceWords: 40 };

/** Folders with guides and READMEs. */
const guideFolders = [
  "docs",
  "deploy",
  "examples",
  "integrations",
  "models",
  "packages",
  "templates",
  "test",
  "training",
];

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

interface Comment {
  readonly place: string;
  readonly text: string;
}

async function filesIn(folder: string, isWanted: (name: string) => boolean): Promise<string[]> {
  const names = await readdir(path.join(root, folder), { recursive: true });
  const wanted = names.filter(
    (name) => isWanted(name) && !/node_modules|\b(?:dist|venv)\b/.test(name),
  );
  return wanted.map((name) => path.join(folder, name)).toSorted();
}

function isSource(name: string): boolean {
  return name.endsWith(".ts") && !/\.(?:test|fixture|d)\.ts$/.test(name);
}

/** Tests and their fixtures, examples, benchmarks, scripts and the Python package. */
async function testCode(): Promise<readonly string[]> {
  const nextToSources = (name: string): boolean => /\.(?:test|fixture)\.ts$/.test(name);
  const isCode = (name: string): boolean => /\.(?:ts|mjs|py)$/.test(name);
  const found = await Promise.all([
    ...["src", "environments", "packages"].map((folder) => filesIn(folder, nextToSources)),
    ...["bench", "examples", "integrations", "interop", "scripts", "test"].map((folder) =>
      filesIn(folder, isCode),
    ),
  ]);
  return found.flat();
}

/** Returns the matches of a pattern in files. `read` returns a match's text. */
async function findIn(
  files: readonly string[],
  pattern: RegExp,
  read: (groups: readonly (string | undefined)[]) => string,
): Promise<Comment[]> {
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(path.join(root, file), "utf8");
      let line = 1;
      let end = 0;
      return Array.from(text.matchAll(pattern), (match) => {
        line += text.slice(end, match.index).split("\n").length - 1;
        end = match.index;
        return { place: `${file}:${line}`, text: read(match) };
      });
    }),
  );
  return found.flat().filter(({ text }) => wordsOf(text).length >= 3);
}

async function docComments(): Promise<Comment[]> {
  const folders = ["src", "environments", "packages"];
  const files = (await Promise.all(folders.map((folder) => filesIn(folder, isSource)))).flat();
  return await findIn(files, /\/\*\*(.*?)\*\//gs, ([, body]) => describedIn(body!));
}

/** Comments of test code: doc comments, runs of line comments, and docstrings. */
async function testComments(): Promise<Comment[]> {
  const files = await testCode();
  const isPython = (file: string): boolean => file.endsWith(".py");
  const script = /\/\*\*(.*?)\*\/|((?:^[ \t]*\/\/ [^\n]*\n)+)/gms;
  const python = /"""(.*?)"""|((?:^[ \t]*# [^\n]*\n)+)/gms;
  const read = ([, block, lines = ""]: readonly (string | undefined)[]): string =>
    describedIn(block ?? lines.replaceAll(/^\s*(?:\/\/|#) /gm, ""));
  const found = await Promise.all([
    findIn(
      files.filter((file) => !isPython(file)),
      script,
      read,
    ),
    findIn(files.filter(isPython), python, read),
  ]);
  return found.flat();
}

/** Titles of tests and of groups of tests. */
async function testTitles(): Promise<Comment[]> {
  const title =
    /(?:\b(?:test|describe)[.\w]*\(|\)\()\s*(["`])((?:\\.|(?!\1).)*)\1,\s*(?:async\b|\(|\w+ =>)/g;
  const files = (await testCode()).filter((file) => file.endsWith(".test.ts"));
  return await findIn(files, title, ([, , text]) => text!);
}

/** Returns a doc comment's words, without its stars, its code and its tags. */
function describedIn(comment: string): string {
  const lines = comment.replaceAll(/^\s*\* ?/gm, "");
  const [description = ""] = lines.split(/^\s*@/m);
  return description
    .replaceAll(/```.*?```/gs, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

async function guides(): Promise<Comment[]> {
  const isGuide = (name: string): boolean => name.endsWith(".md");
  const atRoot = (await readdir(root)).filter(isGuide);
  const below = await Promise.all(guideFolders.map((folder) => filesIn(folder, isGuide)));
  const files = [...atRoot, ...below.flat()];
  return await Promise.all(
    files.map(async (file) => {
      const text = await readFile(path.join(root, file), "utf8");
      return { place: file, text: text.replaceAll(/```.*?```/gs, "") };
    }),
  );
}

function sentencesOf(guide: string): string[] {
  const paragraphs = guide.split(/\n\s*\n|^\s*[-*|#].*$/m);
  return paragraphs.flatMap((paragraph) => paragraph.trim().split(/(?<=[.!?:])\s+/));
}

function expectFewOddWords(texts: readonly Comment[]): void {
  const found = texts.flatMap(({ place, text }) =>
    Array.from(text.matchAll(odd), ([word]) => `${place}: ${word}`),
  );
  const wordCount = texts.reduce((sum, { text }) => sum + wordsOf(text).length, 0);
  const share = found.length / wordCount;
  expect(share, found.slice(0, 20).join("\n")).toBeLessThanOrEqual(most.oddWords);
}

function expectFewOpenings(texts: readonly Comment[]): void {
  const found = texts.filter(({ text }) => opening.test(text));
  const first = found.slice(0, 20).map(({ place, text }) => `${place}: ${text.slice(0, 80)}`);
  expect(found.length / texts.length, first.join("\n")).toBeLessThanOrEqual(most.openings);
}

test("doc comments begin with a verb or a noun phrase, in plain words", async () => {
  const comments = await docComments();
  expectFewOpenings(comments);
  expectFewOddWords(comments);
});

test("comments of tests, examples and scripts begin with a verb or a noun phrase, in plain words", async () => {
  const comments = await testComments();
  expect(comments.length).toBeGreaterThan(1500);
  expectFewOpenings(comments);
  expectFewOddWords(comments);
});

test("test titles use plain words", async () => {
  const titles = await testTitles();
  expect(titles.length).toBeGreaterThan(3000);
  expectFewOpenings(titles);
  expectFewOddWords(titles);
});

test("guides use plain words", async () => {
  expectFewOddWords(await guides());
});

test("guides have no sentence of more than 40 words", async () => {
  const long = (await guides()).flatMap(({ place, text }) =>
    sentencesOf(text)
      .filter((sentence) => wordsOf(sentence).length > most.sentenceWords)
      .map((sentence) => `${place}: ${sentence}`),
  );
  expect(long).toEqual([]);
});

test("no folder has more than 30 source files", async () => {
  const counts = new Map<string, number>();
  const files = await Promise.all(
    ["src", "packages", "bench"].map((folder) => filesIn(folder, isSource)),
  );
  for (const file of files.flat()) {
    const folder = path.dirname(file);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  expect([...counts].filter(([, count]) => count > 30)).toEqual([]);
});
