import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { modelFolder } from "./real-tokenizers.fixture.ts";
import { UsageError } from "../errors.ts";
import { readModelFolder } from "./model-folder.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-model-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function save(files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(dir, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }
}

describe("readModelFolder()", () => {
  test("reads the folder of Qwen3", async () => {
    const folder = await readModelFolder(modelFolder("qwen3"));
    expect(folder.chatTemplateFile).toBe("tokenizer_config.json");
    expect(folder.chatTemplate).toContain("<|im_start|>");
    expect(folder.specialTokens).toEqual({
      eos_token: "<|im_end|>",
      pad_token: "<|endoftext|>",
    });
    expect(folder.eosTokenIds).toEqual([]);
  });

  test("reads the response template with Python's JSON values", async () => {
    await save({
      "tokenizer_config.json": '{"response_template": {"version": 1, "fields": {"content": {}}}}',
    });
    const { responseTemplate } = await readModelFolder(dir);
    expect(responseTemplate).toEqual(
      new Map<string, unknown>([
        ["version", 1n],
        ["fields", new Map([["content", new Map()]])],
      ]),
    );
  });

  test("accepts an empty folder", async () => {
    expect(await readModelFolder(dir)).toEqual({ dir, specialTokens: {}, eosTokenIds: [] });
  });

  test("refuses a missing folder, and a file that is not JSON", async () => {
    await expect(readModelFolder(path.join(dir, "nope"))).rejects.toThrow(UsageError);
    await save({ "config.json": "{" });
    await expect(readModelFolder(dir)).rejects.toThrow(
      new RegExp(`^Cannot read ${path.join(dir, "config.json")}: .*, expected JSON$`),
    );
  });

  test.each([
    [{ "tokenizer_config.json": { chat_template: "T" } }, "T", "tokenizer_config.json"],
    [
      {
        "tokenizer_config.json": {
          chat_template: [
            { name: "default", template: "D" },
            { name: "tool_use", template: "U" },
          ],
        },
      },
      "U",
      "tokenizer_config.json",
    ],
    [
      { "tokenizer_config.json": { chat_template: [{ name: "default", template: "D" }] } },
      "D",
      "tokenizer_config.json",
    ],
    [
      {
        "tokenizer_config.json": { chat_template: "T" },
        "chat_template.json": { chat_template: "J" },
      },
      "J",
      "chat_template.json",
    ],
    [
      { "tokenizer_config.json": { chat_template: "T" }, "chat_template.jinja": "F\n" },
      "F\n",
      "chat_template.jinja",
    ],
    [
      { "chat_template.jinja": "F", "additional_chat_templates/tool_use.jinja": "U" },
      "U",
      "additional_chat_templates/tool_use.jinja",
    ],
  ])("reads the chat template of %j", async (files, chatTemplate, chatTemplateFile) => {
    await save(files);
    expect(await readModelFolder(dir)).toMatchObject({ chatTemplate, chatTemplateFile });
  });

  test("reads special tokens given as texts or objects, including a model's own ones", async () => {
    await save({
      "tokenizer_config.json": {
        bos_token: { content: "<s>", lstrip: false },
        eos_token: "</s>",
        unk_token: null,
        add_bos_token: true,
        extra_special_tokens: { image_token: "<image>" },
      },
      "special_tokens_map.json": { pad_token: "<pad>", eos_token: "old" },
    });
    expect((await readModelFolder(dir)).specialTokens).toEqual({
      bos_token: "<s>",
      eos_token: "</s>",
      pad_token: "<pad>",
      image_token: "<image>",
    });
  });

  test.each([
    [
      { "generation_config.json": { eos_token_id: [2, 3] }, "config.json": { eos_token_id: 4 } },
      [2, 3],
    ],
    [{ "generation_config.json": { eos_token_id: 2 } }, [2]],
    [{ "generation_config.json": {}, "config.json": { eos_token_id: 4 } }, [4]],
    [{ "config.json": { text_config: { eos_token_id: 5 } } }, [5]],
    [{ "config.json": { eos_token_id: null } }, []],
  ])("reads the ids that end generation from %j", async (files, eosTokenIds) => {
    await save(files);
    expect((await readModelFolder(dir)).eosTokenIds).toEqual(eosTokenIds);
  });

  test("reads the maximum length of a sequence", async () => {
    await save({ "config.json": { text_config: { max_position_embeddings: 4096 } } });
    expect((await readModelFolder(dir)).contextLength).toBe(4096);
    await save({ "config.json": { max_position_embeddings: 8192 } });
    expect((await readModelFolder(dir)).contextLength).toBe(8192);
  });
});
