import { chmod, mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findWeightsProblem } from "./weights-folder.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "weights-folder-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

type Shapes = Readonly<Record<string, readonly number[]>>;

/** The bytes of a file with tensors of 32-bit zeros. */
function safetensors(shapes: Shapes): Buffer {
  let place = 0;
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  for (const [name, shape] of Object.entries(shapes)) {
    const bytes = 4 * shape.reduce((all, size) => all * size, 1);
    header[name] = { dtype: "F32", shape, data_offsets: [place, place + bytes] };
    place += bytes;
  }
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([size, text, Buffer.alloc(place)]);
}

const complete: Shapes = { embed: [8, 4], "layers.0.up": [6, 4], norm: [4] };

async function folder(
  name: string,
  {
    shapes = complete,
    config = { architectures: ["LlamaForCausalLM"] },
    files = { "model.safetensors": safetensors(shapes) },
  }: { shapes?: Shapes; config?: object; files?: Readonly<Record<string, Buffer | string>> } = {},
): Promise<string> {
  const made = path.join(dir, name);
  await mkdir(made);
  await writeFile(path.join(made, "config.json"), JSON.stringify(config));
  for (const [file, bytes] of Object.entries(files)) await writeFile(path.join(made, file), bytes);
  return made;
}

describe("findWeightsProblem()", () => {
  test("accepts another step of the model, and folders that this machine cannot read", async () => {
    const [before, after] = [await folder("a"), await folder("b")];
    expect(await findWeightsProblem(after, before)).toBeUndefined();
    expect(await findWeightsProblem(after, path.join(dir, "elsewhere"))).toBeUndefined();
    expect(await findWeightsProblem(after)).toBeUndefined();
    expect(await findWeightsProblem(path.join(dir, "elsewhere"), before)).toBeUndefined();
    expect(await findWeightsProblem("meta-llama/Llama-3.2-1B", before)).toBeUndefined();
    const other = await folder("c", { files: { "weights.gguf": "GGUF" } });
    expect(await findWeightsProblem(other, before)).toBeUndefined();
  });

  test("names a file that ends early, for any length", async () => {
    const before = await folder("a");
    const bytes = safetensors(complete);
    for (const [index, [size, expected]] of (
      [
        [bytes.length - 1, "holds tensor norm with offsets that do not fit"],
        [40, "has no header"],
        [0, "has no header"],
      ] as const
    ).entries()) {
      const files = { "model.safetensors": bytes.subarray(0, size) };
      const torn = await folder(`torn-${index}`, { files });
      expect(await findWeightsProblem(torn, before)).toBe(
        `Cannot load the model in ${torn}: model.safetensors ${expected}, ` +
          "expected weights in safetensors format",
      );
    }
  });

  test("names a file or tensor that the index lists and the folder lacks", async () => {
    const index = (files: Readonly<Record<string, string>>) =>
      JSON.stringify({ weight_map: files });
    const first = safetensors({ embed: [8, 4] });
    const absent = await folder("absent", {
      files: {
        "1.safetensors": first,
        "model.safetensors.index.json": index({ embed: "1.safetensors", norm: "2.safetensors" }),
      },
    });
    expect(await findWeightsProblem(absent)).toContain("2.safetensors cannot be opened");
    const lacking = await folder("lacking", {
      files: {
        "1.safetensors": first,
        "model.safetensors.index.json": index({ embed: "1.safetensors", norm: "1.safetensors" }),
      },
    });
    expect(await findWeightsProblem(lacking)).toContain(
      "1.safetensors does not hold tensor norm, which model.safetensors.index.json says it does",
    );
    for (const [at, text] of ["{", "{}", index({ embed: "../1.safetensors" })].entries()) {
      const files = { "1.safetensors": first, "model.safetensors.index.json": text };
      const broken = await folder(`broken-${at}`, { files });
      expect(await findWeightsProblem(broken)).toContain("has no weight_map");
    }
  });

  test("names a tensor of another model, or a missing one", async () => {
    const before = await folder("a");
    const stranger = await folder("stranger", { config: { architectures: ["GPT2LMHeadModel"] } });
    expect(await findWeightsProblem(stranger, before)).toContain(
      "config.json names GPT2LMHeadModel, expected LlamaForCausalLM",
    );
    const narrower = await folder("narrower", { shapes: { ...complete, "layers.0.up": [3, 4] } });
    expect(await findWeightsProblem(narrower, before)).toContain(
      `tensor layers.0.up has shape [3, 4], expected [6, 4], as in ${before}`,
    );
    const incomplete = await folder("incomplete", { shapes: { embed: [8, 4], norm: [4] } });
    expect(await findWeightsProblem(incomplete, before)).toContain(
      `tensor layers.0.up is missing, which ${before} has`,
    );
  });

  test("accepts a folder that lacks only tensors that trainers do not write", async () => {
    const config = { architectures: ["Glm4MoeForCausalLM"], num_hidden_layers: 2 };
    const own: Shapes = { embed: [8, 4], "model.layers.1.up": [6, 4] };
    const published = await folder("published", {
      config,
      shapes: {
        ...own,
        "model.layers.2.up": [6, 4],
        "mtp.fc": [4, 8],
        "model.layers.1.self_attn.rotary_emb.inv_freq": [2],
      },
    });
    const fsdp = { ...config, architectures: ["FSDPGlm4MoeForCausalLM"] };
    const trained = await folder("trained", { config: fsdp, shapes: own });
    expect(await findWeightsProblem(trained, published)).toBeUndefined();
    const { embed, ...rest } = own;
    const incomplete = await folder("incomplete", { config, shapes: rest });
    expect(embed).toBeDefined();
    expect(await findWeightsProblem(incomplete, published)).toContain("tensor embed is missing");
  });

  test("does not require files in another format that are next to the server's weights", async () => {
    const files = {
      "model.safetensors": safetensors(complete),
      "consolidated.safetensors": safetensors({ "tok_embeddings.weight": [80, 40] }),
    };
    const before = await folder("a", { files });
    expect(await findWeightsProblem(await folder("b"), before)).toBeUndefined();
  });

  test("names a file with the right name and other contents", async () => {
    const before = await folder("a");
    const directory = await folder("b");
    await mkdir(path.join(directory, "old.safetensors"));
    expect(await findWeightsProblem(directory, before)).toContain("old.safetensors is not a file");
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(4n);
    const files = { "model.safetensors": Buffer.concat([size, Buffer.from("null")]) };
    expect(await findWeightsProblem(await folder("c", { files }), before)).toContain(
      "model.safetensors has a header without tensors",
    );
  });

  test.skipIf(process.getuid?.() === 0)("accepts files that only the server may read", async () => {
    const [before, secret] = [await folder("a"), await folder("b")];
    await chmod(path.join(secret, "model.safetensors"), 0);
    expect(await findWeightsProblem(secret, before)).toBeUndefined();
  });

  test("accepts the same weights under other names, and a tied head that is present or absent", async () => {
    const before = await folder("a", {
      shapes: { ...complete, "layers.0.up": [3, 8], gate: [3, 8] },
    });
    const fused = await folder("fused", { shapes: { embed: [8, 4], norm: [4], both: [6, 8] } });
    expect(await findWeightsProblem(fused, before)).toBeUndefined();
    const config = { architectures: ["LlamaForCausalLM"], tie_word_embeddings: true };
    const tied = await folder("tied", { config });
    const written = await folder("written", {
      config,
      shapes: { ...complete, "lm_head.weight": [8, 4] },
    });
    expect(await findWeightsProblem(tied, written)).toBeUndefined();
    expect(await findWeightsProblem(written, tied)).toBeUndefined();
  });
});
