import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkTeacherVocabulary } from "./check-teacher-vocabulary.ts";
import { fingerprintFiles } from "./fingerprint.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let scratch = "";
let run: Parameters<typeof checkTeacherVocabulary>[0];
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-vocabulary-"));
  const vocabularySize = await countIds();
  run = {
    identity: { tokenizer: await fingerprintFiles(model, ["tokenizer.json"]) },
    found: { vocabularySize, settings: { model } },
  };
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

interface TokenizerFile {
  readonly model: { readonly vocab: Record<string, number> };
  readonly added_tokens: readonly { readonly id: number }[];
}

async function readTokenizer(): Promise<TokenizerFile> {
  return JSON.parse(await readFile(path.join(model, "tokenizer.json"), "utf8")) as TokenizerFile;
}

async function countIds(): Promise<number> {
  const { model, added_tokens } = await readTokenizer();
  return Math.max(...Object.values(model.vocab), ...added_tokens.map(({ id }) => id)) + 1;
}

/** Writes a teacher's folder with a changed tokenizer. */
async function teacher(name: string, change: (file: TokenizerFile) => void): Promise<string> {
  const file = await readTokenizer();
  change(file);
  const dir = path.join(scratch, name);
  await mkdir(dir);
  await writeFile(path.join(dir, "tokenizer.json"), JSON.stringify(file));
  return dir;
}

test("the run's own tokenizer is accepted, also if its file is written in another way", async () => {
  expect(await checkTeacherVocabulary(run, model)).toBeUndefined();
  const dir = await teacher("same", () => {});
  expect(await checkTeacherVocabulary(run, dir)).toBeUndefined();
});

test("another token for an id is refused, and named", async () => {
  const dir = await teacher("swapped", ({ model: { vocab } }) => {
    const [[one, first], [other, second]] = Object.entries(vocab).slice(-2) as [
      [string, number],
      [string, number],
    ];
    Object.assign(vocab, { [one]: second, [other]: first });
  });
  await expect(checkTeacherVocabulary(run, dir)).rejects.toThrow(
    /^Cannot score with the teacher in .*: its tokenizer has for the id \d+ the token ".*", and the run's has ".*"; a teacher needs/,
  );
});

test("without the run's tokenizer, files of one size are taken for the same, with a note", async () => {
  const dir = await teacher("unknown", () => {});
  const { identity, found } = run;
  const away = { identity: identity!, found: { ...found, settings: { model: `${scratch}/none` } } };
  expect(await checkTeacherVocabulary(away, dir)).toContain("so they are taken for the same");
});

test("another number of ids is refused", async () => {
  const { identity, found } = run;
  const larger = { identity: identity!, found: { ...found, vocabularySize: 5 } };
  const dir = await teacher("larger", () => {});
  await expect(checkTeacherVocabulary(larger, dir)).rejects.toThrow("ids, and the run's has 5;");
});
