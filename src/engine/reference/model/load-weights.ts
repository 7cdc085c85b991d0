import { UsageError } from "../../../errors.ts";
import { PANEL_WIDTH } from "../kernels/multiply.ts";
import type { WasmMemory } from "../wasm/web-assembly.ts";
import type { DecoderShape } from "./decoder-shape.ts";
import type { TensorDirectory, TensorEntry } from "./tensor-directory.ts";
import { readTensor } from "./tensor-directory.ts";
import type {
  FeedForwardAddresses,
  LayerAddresses,
  LinearAddress,
  WeightAddresses,
} from "./weight-plan.ts";

/**
 * The destination of a tensor's floats. `store()` receives them in pieces, rows first; `start` is
 * the number of floats before the piece.
 */
interface Placement {
  readonly name: string;
  readonly shape: readonly number[];
  readonly optional?: boolean;
  store(piece: Float32Array, start: number): void;
}

/**
 * Reads a model's weights into memory, without blocking the event loop for long.
 *
 * **Source:** huggingface/transformers src/transformers/models/{llama,qwen2,qwen3,qwen3_moe}/modeling_*.py
 * (names and shapes of the tensors).
 *
 * @throws UsageError naming folder and tensor if one is missing, has another shape, or is not part
 *   of the architecture.
 */
export async function loadWeights(
  directory: TensorDirectory,
  { shape, weights, memory }: { shape: DecoderShape; weights: WeightAddresses; memory: WasmMemory },
): Promise<void> {
  const floats = new Float32Array(memory.buffer);
  const placements = [
    ...modelPlacements(floats, shape, weights),
    ...weights.layers.flatMap((layer, index) =>
      layerPlacements(floats, { shape, layer, prefix: `model.layers.${index}.` }),
    ),
  ];
  refuseUnknown(directory, { shape, known: new Set(placements.map(({ name }) => name)) });
  // All tensors are checked before the first is read, because the memory may contain earlier
  // weights.
  for (const placement of placements) findEntry(directory, placement);
  for (const placement of placements) await place(directory, placement);
}

/**
 * Throws for a tensor that the architecture does not have, because the model would then be another
 * one.
 */
function refuseUnknown(
  { folder, entries }: TensorDirectory,
  { shape, known }: { shape: DecoderShape; known: ReadonlySet<string> },
): void {
  for (const { name, file } of entries.values()) {
    if (known.has(name) || name.endsWith(".rotary_emb.inv_freq")) continue;
    if (name === "lm_head.weight" && shape.tiesEmbedding) continue;
    throw new UsageError(
      `Cannot load the model in ${folder}: ${file} holds tensor ${name}, which no ` +
        `${shape.architecture} of this engine has; serve the model with an inference server`,
    );
  }
}

async function place(directory: TensorDirectory, placement: Placement): Promise<void> {
  const entry = findEntry(directory, placement);
  if (entry === undefined) return;
  let start = 0;
  for await (const piece of readTensor(directory.folder, entry)) {
    placement.store(piece, start);
    start += piece.length;
  }
}

/** Returns the tensor for a placement, or `undefined` if it is absent and optional. */
function findEntry(
  { folder, entries }: TensorDirectory,
  placement: Placement,
): TensorEntry | undefined {
  const entry = entries.get(placement.name);
  if (entry === undefined) {
    if (placement.optional === true) return undefined;
    throw new UsageError(
      `Cannot load the model in ${folder}: tensor ${placement.name} is missing, expected one of ` +
        `shape [${placement.shape.join(", ")}]`,
    );
  }
  checkShape(folder, entry, placement);
  return entry;
}

function checkShape(folder: string, { name, file, shape }: TensorEntry, expected: Placement): void {
  if (shape.join() === expected.shape.join()) return;
  throw new UsageError(
    `Cannot load the model in ${folder}: tensor ${name} in ${file} has shape ` +
      `[${shape.join(", ")}], expected [${expected.shape.join(", ")}] by config.json`,
  );
}

function modelPlacements(
  floats: Float32Array,
  { vocabularySize, hiddenSize, tiesEmbedding }: DecoderShape,
  { embedding, finalNorm, output }: WeightAddresses,
): readonly Placement[] {
  const matrix = (name: string, target: LinearAddress): Placement =>
    intoPanels(floats, { name, target, firstOutput: 0, outputs: vocabularySize });
  return [
    matrix("model.embed_tokens.weight", embedding),
    intoVector(floats, { name: "model.norm.weight", address: finalNorm, size: hiddenSize }),
    ...(tiesEmbedding ? [] : [matrix("lm_head.weight", output)]),
  ];
}

function layerPlacements(
  floats: Float32Array,
  { shape, layer, prefix }: { shape: DecoderShape; layer: LayerAddresses; prefix: string },
): readonly Placement[] {
  const { hiddenSize, headSize } = shape;
  const queries = shape.queryHeadCount * headSize;
  const keys = shape.keyValueHeadCount * headSize;
  const vector = (name: string, address: number, size: number): Placement =>
    intoVector(floats, { name: `${prefix}${name}.weight`, address, size });
  const matrix = (
    name: string,
    target: LinearAddress,
    { firstOutput, outputs }: MatrixOutputs,
  ): Placement =>
    intoPanels(floats, { name: `${prefix}${name}.weight`, target, firstOutput, outputs });
  const projections = [
    { name: "self_attn.q_proj", firstOutput: 0, outputs: queries },
    { name: "self_attn.k_proj", firstOutput: queries, outputs: keys },
    { name: "self_attn.v_proj", firstOutput: queries + keys, outputs: keys },
  ];
  return [
    vector("input_layernorm", layer.inputNorm, hiddenSize),
    vector("post_attention_layernorm", layer.feedForwardNorm, hiddenSize),
    ...projections.map((part) => matrix(part.name, layer.projection, part)),
    ...projections.map(({ name, firstOutput, outputs }) => ({
      ...intoVector(floats, {
        name: `${prefix}${name}.bias`,
        address: layer.projection.bias + firstOutput * 4,
        size: outputs,
      }),
      optional: shape.architecture !== "Qwen2ForCausalLM",
    })),
    ...(shape.normalizesHeads
      ? [
          vector("self_attn.q_norm", layer.queryNorm, headSize),
          vector("self_attn.k_norm", layer.keyNorm, headSize),
        ]
      : []),
    matrix("self_attn.o_proj", layer.attentionOutput, { firstOutput: 0, outputs: hiddenSize }),
    ...feedForwardMatrices(shape, layer).map((part) => matrix(part.name, part.target, part)),
  ];
}

/** The rows of a matrix in memory that a tensor fills. */
interface MatrixOutputs {
  readonly firstOutput: number;
  readonly outputs: number;
}

/** Lists the tensors of a feed-forward layer, or of a router and its experts. */
function feedForwardMatrices(
  { hiddenSize }: DecoderShape,
  { feedForward }: LayerAddresses,
): readonly (MatrixOutputs & { readonly name: string; readonly target: LinearAddress })[] {
  const matrices = (name: string, { gate, output }: FeedForwardAddresses) => {
    const size = output.inputSize;
    return [
      { name: `${name}.gate_proj`, target: gate, firstOutput: 0, outputs: size },
      { name: `${name}.up_proj`, target: gate, firstOutput: size, outputs: size },
      { name: `${name}.down_proj`, target: output, firstOutput: 0, outputs: hiddenSize },
    ];
  };
  if ("gate" in feedForward) return matrices("mlp", feedForward);
  const { router, experts } = feedForward;
  return [
    { name: "mlp.gate", target: router, firstOutput: 0, outputs: experts.length },
    ...experts.flatMap((expert, index) => matrices(`mlp.experts.${index}`, expert)),
  ];
}

function intoVector(
  floats: Float32Array,
  { name, address, size }: { name: string; address: number; size: number },
): Placement {
  return {
    name,
    shape: [size],
    store(piece, start) {
      floats.set(piece, address / 4 + start);
    },
  };
}

/** Places a matrix. Files contain `[output][input]`, panels `[output / 16][input][output % 16]`. */
function intoPanels(
  floats: Float32Array,
  {
    name,
    target: { weights, inputSize },
    firstOutput,
    outputs,
  }: { name: string; target: LinearAddress; firstOutput: number; outputs: number },
): Placement {
  return {
    name,
    shape: [outputs, inputSize],
    store(piece, start) {
      let output = firstOutput + Math.floor(start / inputSize);
      let input = start % inputSize;
      for (let index = 0; index < piece.length; output++, input = 0) {
        const to = panelElement(weights / 4, { inputSize, output, input });
        const end = Math.min(piece.length, index + inputSize - input);
        for (let at = to; index < end; at += PANEL_WIDTH) floats[at] = piece[index++] ?? 0;
      }
    },
  };
}

/** Returns the index of a weight in the memory, in floats; `start` is the matrix's first float. */
export function panelElement(
  start: number,
  { inputSize, output, input }: { inputSize: number; output: number; input: number },
): number {
  const panel = Math.floor(output / PANEL_WIDTH);
  return start + (panel * inputSize + input) * PANEL_WIDTH + (output % PANEL_WIDTH);
}
