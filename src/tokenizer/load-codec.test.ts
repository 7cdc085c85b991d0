import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import * as nodeModule from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RolloutError, UsageError } from "../errors.ts";
import { createIsolatedCodec } from "./native-codec.ts";
import { maxTextLength } from "./text-length.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";
import { loadTokenCodec } from "./load-codec.ts";
import { readModelBytes } from "./model-file.ts";
import { readModelFolder } from "./model-folder.ts";
import { modelFolder } from "./real-tokenizers.fixture.ts";

/** A tokenizer that selects pieces by score, as SentencePiece does, with a limit on its texts. */
const scored = {
  version: "1.0",
  truncation: { direction: "Right", max_length: 2, strategy: "LongestFirst", stride: 0 },
  padding: {
    strategy: { Fixed: 16 },
    direction: "Right",
    pad_to_multiple_of: null,
    pad_id: 0,
    pad_type_id: 0,
    pad_token: "<unk>",
  },
  added_tokens: [
    {
      id: 0,
      content: "<unk>",
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    },
    {
      id: 1,
      content: "</s>",
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    },
  ],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: {
    type: "Unigram",
    unk_id: 0,
    byte_fallback: false,
    vocab: [
      ["<unk>", 0],
      ["</s>", 0],
      ["a", -1],
      ["b", -1],
      ["<", -2],
      ["/", -2],
      ["s", -2],
      [">", -2],
      ["ab", -1.5],
    ],
  },
};

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-codec-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

function save(document: unknown): Promise<void> {
  const text = typeof document === "string" ? document : JSON.stringify(document);
  return writeFile(path.join(dir, "tokenizer.json"), text);
}

async function problemOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error;
  }
}

describe("loadTokenCodec()", () => {
  test("describes the folder that is missing, and how to get a model of the Hub", async () => {
    const missing = await problemOf(loadTokenCodec(path.join(dir, "nope")));
    expect(missing).toBeInstanceOf(UsageError);
    expect(missing).toHaveProperty(
      "message",
      `Cannot open the model folder ${dir}/nope: it does not exist, ` +
        "expected a folder with tokenizer.json and tokenizer_config.json",
    );
    expect(await problemOf(loadTokenCodec("Qwen/Qwen3-0.6B"))).toHaveProperty(
      "message",
      expect.stringContaining("hf:Qwen/Qwen3-0.6B"),
    );
  });

  test("says how to get a missing tokenizer.json", async () => {
    const problem = await problemOf(loadTokenCodec(dir));
    expect(problem).toBeInstanceOf(UsageError);
    expect(problem).toHaveProperty("message", expect.stringContaining("save_pretrained(DIR)"));
  });

  test.each([
    ["{", "expected JSON"],
    ["[]", "it is not an object"],
    [{ model: {} }, 'it has no "model" with a "vocab"'],
    [{ ...scored, added_tokens: [{ id: 1 }] }, "added_tokens[0] lacks them"],
  ])("refuses an invalid tokenizer.json: %j", async (document, problem) => {
    await save(document);
    const error = await problemOf(loadTokenCodec(dir));
    expect(error).toBeInstanceOf(UsageError);
    expect(error).toHaveProperty("message", expect.stringContaining(problem));
  });

  test.each(["native", "javascript"] as const)(
    "refuses a file that the %s library cannot read",
    async (backend) => {
      await save({ ...scored, normalizer: { type: "Nope" } });
      expect(await problemOf(loadTokenCodec(dir, { backend }))).toBeInstanceOf(UsageError);
    },
  );

  test("falls back on JavaScript if the native binary does not load and the ids are the same", async () => {
    const importNative = () => Promise.reject(new Error("no binary for this machine"));
    const codec = await loadTokenCodec(modelFolder("qwen3"), { importNative });
    expect(codec.backend).toBe("javascript");
    await codec.close?.();
    await save(scored);
    const refused = await problemOf(loadTokenCodec(dir, { importNative }));
    expect(refused).toBeInstanceOf(UsageError);
    expect(refused).toHaveProperty(
      "message",
      `Cannot load the tokenizer of ${dir} in JavaScript: its ids may differ from those of the native library, ` +
        "which does not load (no binary for this machine); expected that library, which `npm install tokenizers` " +
        "installs on most machines, or the backend `javascript` if other ids do no harm",
    );
    const requested = await loadTokenCodec(dir, { backend: "javascript", importNative });
    expect(requested.backend).toBe("javascript");
    await requested.close?.();
    const problem = await problemOf(loadTokenCodec(dir, { backend: "native", importNative }));
    expect(problem).toBeInstanceOf(UsageError);
    expect(problem).toHaveProperty(
      "message",
      "Cannot load the native tokenizer library: no binary for this machine, " +
        "expected a binary for this machine; the backend `javascript` needs none",
    );
  });
});

describe.each(["native", "javascript"] as const)("a scored vocabulary, %s", (backend) => {
  test("finds no control token in plain text", async () => {
    await save(scored);
    const codec = await loadTokenCodec(dir, { backend });
    expect(await codec.encode("a</s>")).toEqual([2, 1]);
    expect(await codec.encodePlain("a</s>")).toEqual([2, 4, 5, 6, 7]);
    await codec.close?.();
  });

  test("is neither truncated nor padded", async () => {
    await save(scored);
    const codec = await loadTokenCodec(dir, { backend });
    expect(await codec.encode("abab</s>a")).toEqual([8, 8, 1, 2]);
    expect(codec.vocabularySize).toBe(9);
    await codec.close?.();
  });
});

describe.each(["native", "javascript"] as const)("the %s codec", (backend) => {
  test("refuses a text of more than four million characters", async () => {
    await save(scored);
    const codec = await loadTokenCodec(dir, { backend });
    for (const how of ["encode", "encodePlain"] as const) {
      const problem = await problemOf(codec[how]("a".repeat(maxTextLength + 1)));
      expect(problem).toBeInstanceOf(RolloutError);
      expect(problem).toHaveProperty("code", "internal/text-too-long");
    }
    await codec.close?.();
  });

  test("has the ids and token texts of a vocabulary with gaps", async () => {
    const model = { type: "WordLevel", unk_token: "a", vocab: { a: 0, b: 7 } };
    const added = [{ ...scored.added_tokens[0], content: "b", id: 7 }];
    await save({ ...scored, added_tokens: added, model });
    const codec = await loadTokenCodec(dir, { backend });
    expect(codec.vocabularySize).toBe(8);
    const spellings = [0, 7, 5, 8, -1, 0.5].map((id) => codec.tokenOf(id));
    expect(spellings).toEqual(["a", "b", undefined, undefined, undefined, undefined]);
    expect(["a", "b", "c"].map((literal) => codec.idOf(literal))).toEqual([0, 7, undefined]);
    await codec.close?.();
  });
});

/** A pattern with which the native library ends the process for many repetitions of the letter. */
const wild = {
  ...scored,
  pre_tokenizer: {
    type: "Split",
    pattern: { Regex: "(a+)+$" },
    behavior: "Isolated",
    invert: false,
  },
};

describe("a tokenizer with unknown patterns", () => {
  test("turns a crash into an error, and continues with the next text", async () => {
    await save(wild);
    const codec = await loadTokenCodec(dir);
    expect(codec.backend).toBe("native");
    expect(await codec.encode("ab</s>")).toEqual([8, 1]);
    const problem = await problemOf(codec.encode(`${"a".repeat(40)}b`));
    expect(problem).toBeInstanceOf(RolloutError);
    expect(problem).toHaveProperty("code", "internal/tokenizer");
    expect(problem).toHaveProperty(
      "message",
      "Cannot use the tokenizer: its process ended with SIGABRT",
    );
    expect(await codec.encode("b</s>")).toEqual([3, 1]);
    expect(await codec.encodePlain("</s>")).toEqual([4, 5, 6, 7]);
    expect(await codec.decode([3, 1])).toBe("b </s>");
    await codec.close?.();
  });

  test("is ended if it does not answer in time", async () => {
    await save(wild);
    const problem = await problemOf(createIsolatedCodec(await readTokenizerFile(dir), 1));
    expect(problem).toBeInstanceOf(RolloutError);
    expect(problem).toHaveProperty(
      "message",
      "Cannot use the tokenizer: it gave no answer within 1 ms",
    );
  });
});

describe("a model folder with other kinds of files", () => {
  test.each(["tokenizer.json", "tokenizer_config.json"])(
    "a device in place of %s",
    async (name) => {
      await save(scored);
      await rm(path.join(dir, name), { force: true });
      await symlink("/dev/zero", path.join(dir, name));
      const read = name === "tokenizer.json" ? loadTokenCodec(dir) : readModelFolder(dir);
      expect(await problemOf(read)).toEqual(
        new UsageError(`Cannot read ${path.join(dir, name)}: expected an ordinary file`),
      );
    },
  );

  test("a file that is too long", async () => {
    await save(scored);
    expect(await problemOf(readModelBytes(dir, "tokenizer.json", 10))).toHaveProperty(
      "message",
      expect.stringMatching(/tokenizer\.json: it has \d+ bytes, expected at most 10$/),
    );
  });
});

describe("the JavaScript codec", () => {
  test("answers many requests at once, each with its own ids", async () => {
    await save(scored);
    const codec = await loadTokenCodec(dir, { backend: "javascript" });
    const counts = Array.from({ length: 50 }, (_item, index) => index + 1);
    const all = await Promise.all(counts.map((count) => codec.encode("b".repeat(count))));
    expect(all.map((ids) => ids.length)).toEqual(counts);
    await codec.close?.();
  });

  test("does not keep the process alive when it is idle", async () => {
    await save(scored);
    // Node may have a thread that resolves imports.
    const others = "registerHooks" in nodeModule ? [] : ["MessagePort"];
    const openPorts = () =>
      process.getActiveResourcesInfo().filter((name) => name === "MessagePort");
    // Threads of earlier tests may still be ending.
    await vi.waitFor(() => expect(openPorts()).toEqual(others), { timeout: 60_000 });
    const codec = await loadTokenCodec(dir, { backend: "javascript" });
    const pending = codec.encode("ab");
    expect(openPorts()).toEqual([...others, "MessagePort"]);
    await pending;
    expect(openPorts()).toEqual(others);
    await codec.close?.();
  });

  test("rejects requests after `close()`, and pending ones", async () => {
    await save(scored);
    const codec = await loadTokenCodec(dir, { backend: "javascript" });
    const pending = problemOf(codec.encode("ab"));
    await codec.close?.();
    for (const problem of [await pending, await problemOf(codec.decode([2]))]) {
      expect(problem).toBeInstanceOf(RolloutError);
      expect(problem).toHaveProperty("code", "internal/tokenizer");
    }
  });
});
