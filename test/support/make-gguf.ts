import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { RandomModelConfig } from "../../src/engine/reference/index.ts";

/**
 * Writes a Llama-type model folder of single-precision weights, as `writeRandomModel()` makes them,
 * as a GGUF file: what llama.cpp loads. Its vocabulary is of made-up tokens.
 *
 * **Source:** ggml-org/ggml docs/gguf.md (layout), ggml-org/llama.cpp gguf-py/gguf/constants.py
 * (names) and convert_hf_to_gguf.py (order of the rows of queries and keys).
 */
export async function writeGguf(file: string, { modelDir }: { modelDir: string }): Promise<void> {
  const config = JSON.parse(
    await readFile(path.join(modelDir, "config.json"), "utf8"),
  ) as RandomModelConfig;
  const tensors = readTensors(await readFile(path.join(modelDir, "model.safetensors"))).map(
    (tensor) => toGgufTensor(tensor, config),
  );
  const fields = listFields(config);
  const infos: Buffer[] = [];
  const data: Buffer[] = [];
  let offset = 0;
  for (const { name, shape, values } of tensors) {
    // The innermost dimension comes first.
    const dimensions = shape.toReversed().map((size) => u64(size));
    infos.push(
      Buffer.concat([text(name), u32(shape.length), ...dimensions, u32(F32), u64(offset)]),
    );
    const padded = Buffer.alloc(Math.ceil((values.length * 4) / ALIGNMENT) * ALIGNMENT);
    Buffer.from(values.buffer, values.byteOffset, values.byteLength).copy(padded);
    data.push(padded);
    offset += padded.length;
  }
  const head = Buffer.concat([
    Buffer.from("GGUF"),
    u32(3),
    u64(tensors.length),
    u64(fields.length),
    ...fields,
    ...infos,
  ]);
  const padding = Buffer.alloc((ALIGNMENT - (head.length % ALIGNMENT)) % ALIGNMENT);
  await writeFile(file, Buffer.concat([head, padding, ...data]));
}

interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

const ALIGNMENT = 32;
/** A tensor's element type. */
const F32 = 0;
/** The types of fields. */
const TYPES = { u32: 4, i32: 5, f32: 6, text: 8, list: 9 } as const;

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

const ENCODERS = { u32, i32: u32, f32, text } as const;

function field<K extends keyof typeof ENCODERS>(
  key: string,
  kind: K,
  value: Parameters<(typeof ENCODERS)[K]>[0],
): Buffer {
  const encode = ENCODERS[kind] as (value: unknown) => Buffer;
  return Buffer.concat([text(key), u32(TYPES[kind]), encode(value)]);
}

function listField<K extends keyof typeof ENCODERS>(
  key: string,
  kind: K,
  values: readonly Parameters<(typeof ENCODERS)[K]>[0][],
): Buffer {
  const encode = ENCODERS[kind] as (value: unknown) => Buffer;
  const head = [text(key), u32(TYPES.list), u32(TYPES[kind]), u64(values.length)];
  return Buffer.concat([...head, ...values.map((value) => encode(value))]);
}

function listFields(config: RandomModelConfig): readonly Buffer[] {
  const numbers = {
    context_length: config.max_position_embeddings,
    embedding_length: config.hidden_size,
    block_count: config.num_hidden_layers,
    feed_forward_length: config.intermediate_size,
    vocab_size: config.vocab_size,
    "attention.head_count": config.num_attention_heads,
    "attention.head_count_kv": config.num_key_value_heads,
    "attention.key_length": config.head_dim,
    "attention.value_length": config.head_dim,
    "rope.dimension_count": config.head_dim,
  };
  const tokens = Array.from({ length: config.vocab_size }, (_, id) => toToken(id));
  return [
    field("general.architecture", "text", "llama"),
    field("general.name", "text", "random"),
    ...Object.entries(numbers).map(([key, value]) => field(`llama.${key}`, "u32", value)),
    field("llama.attention.layer_norm_rms_epsilon", "f32", Number(config["rms_norm_eps"])),
    field("llama.rope.freq_base", "f32", Number(config["rope_theta"])),
    field("tokenizer.ggml.model", "text", "llama"),
    listField(
      "tokenizer.ggml.tokens",
      "text",
      tokens.map(({ token }) => token),
    ),
    listField(
      "tokenizer.ggml.scores",
      "f32",
      tokens.map((_, id) => -id),
    ),
    listField(
      "tokenizer.ggml.token_type",
      "i32",
      tokens.map(({ type }) => type),
    ),
    field("tokenizer.ggml.bos_token_id", "u32", 1),
    field("tokenizer.ggml.eos_token_id", "u32", 2),
  ];
}

/** Three control tokens, then a token for each byte, then words. */
function toToken(id: number): { readonly token: string; readonly type: number } {
  const control = ["<unk>", "<s>", "</s>"][id];
  if (control !== undefined) return { token: control, type: id === 0 ? 2 : 3 };
  const byte = id - 3;
  if (byte < 256) {
    return { token: `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, type: 6 };
  }
  return { token: `word${id}`, type: 1 };
}

function readTensors(file: Buffer): readonly Tensor[] {
  const headerSize = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + headerSize)) as Record<
    string,
    { readonly shape: readonly number[]; readonly data_offsets: readonly [number, number] }
  >;
  return Object.entries(header).map(
    ([
      name,
      {
        shape,
        data_offsets: [start, end],
      },
    ]) => {
      const bytes = file.subarray(8 + headerSize + start, 8 + headerSize + end);
      return { name, shape, values: new Float32Array(Uint8Array.from(bytes).buffer) };
    },
  );
}

const NAMES: Readonly<Record<string, string>> = {
  "model.embed_tokens": "token_embd",
  "model.norm": "output_norm",
  lm_head: "output",
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  post_attention_layernorm: "ffn_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
};

function toGgufTensor({ name, shape, values }: Tensor, config: RandomModelConfig): Tensor {
  const [, layer, part = ""] = /^(?:model\.layers\.(\d+)\.)?(.*)\.weight$/.exec(name) ?? [];
  const own = NAMES[part];
  if (own === undefined) throw new Error(`Cannot write ${name}: expected a tensor of Llama`);
  const heads = { attn_q: config.num_attention_heads, attn_k: config.num_key_value_heads }[own];
  return {
    name: `${layer === undefined ? "" : `blk.${layer}.`}${own}.weight`,
    shape,
    values: heads === undefined ? values : pairRows(values, { heads, inputs: shape[1] ?? 1 }),
  };
}

/** Llama's rotation turns neighbouring rows of a head; in the folder the halves of a head turn. */
function pairRows(
  values: Float32Array,
  { heads, inputs }: { heads: number; inputs: number },
): Float32Array {
  const headSize = values.length / inputs / heads;
  const paired = new Float32Array(values.length);
  for (let row = 0; row < values.length / inputs; row++) {
    const head = Math.floor(row / headSize);
    const place = row % headSize;
    const half = headSize / 2;
    const from = head * headSize + (place % 2) * half + Math.floor(place / 2);
    paired.set(values.subarray(from * inputs, (from + 1) * inputs), row * inputs);
  }
  return paired;
}
