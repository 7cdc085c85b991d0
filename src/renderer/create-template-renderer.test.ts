import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sampleTemplates } from "./sample-templates.fixture.ts";
import { createTemplateRenderer } from "./create-template-renderer.ts";

describe("createTemplateRenderer()", () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), "turnwright-template-"));
  });
  afterAll(async () => {
    await rm(root, { recursive: true });
  });

  async function templateFile(name: string, source: string): Promise<string> {
    const file = path.join(root, `${name}.jinja`);
    await writeFile(file, source);
    return file;
  }

  test("renders text with variables, a clock and without a generation prompt", async () => {
    const source =
      "{{ bos_token }}{{ strftime_now('%Y') }}{% for m in messages %}{{ m.content }}{% endfor %}" +
      "{% if add_generation_prompt %}{{ opener }}{% endif %}";
    const renderer = await createTemplateRenderer({
      templateFile: await templateFile("dated", source),
      variables: new Map([["bos_token", "<s>"]]),
      now: new Date(2026, 10, 21),
    });
    const conversation = { messages: [{ role: "user", content: "x" } as const], tools: [] };
    expect(renderer.render({ ...conversation, addGenerationPrompt: false })).toBe("<s>2026x");
    expect(
      renderer.render({
        ...conversation,
        variables: new Map([["opener", ">"]]),
        now: new Date(2027, 1, 1),
      }),
    ).toBe("<s>2027x>");
  });

  test("writes a card without ids", async () => {
    const file = await templateFile("opening", sampleTemplates.opening);
    const renderer = await createTemplateRenderer({ templateFile: file });
    expect(renderer.card()).toMatchObject({
      source: file,
      stopLiterals: ["<|user|>", "<|observation|>"],
      stopIds: [],
      stopOpeners: ["<|user|>", "<|observation|>"],
    });
    expect(renderer.card().templateHash).toMatch(/^[0-9a-f]{64}$/);
  });

  test("names the file that is absent or no template, and the conversation that is refused", async () => {
    const absent = createTemplateRenderer({ templateFile: path.join(root, "absent.jinja") });
    await expect(absent).rejects.toThrow(/^Cannot read the chat template: .*absent\.jinja/);
    const broken = await templateFile("broken", "{% for %}");
    await expect(createTemplateRenderer({ templateFile: broken })).rejects.toThrow(
      /^Cannot use the chat template .*broken\.jinja: .*line 1/,
    );
    const strict = await templateFile("strict", "{{ raise_exception('No.') }}");
    const renderer = await createTemplateRenderer({ templateFile: strict });
    expect(() => renderer.render({ messages: [], tools: [] })).toThrow(
      /^Cannot render the conversation with the chat template of .*strict\.jinja: No\.$/,
    );
  });
});
