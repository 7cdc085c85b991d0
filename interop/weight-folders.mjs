// Folders of weights: another step of the served model, and folders that must be refused.
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { modelDir } from "./servers.mjs";

const file = "model.safetensors";

/**
 * Writes the model with a separate head. vLLM for CPUs keeps a packed copy of a tied head, and does not update
 * it with the weights.
 */
export function writeUntied(folder) {
  rewrite(folder, (tensors) => {
    const embedding = tensors.find(({ name }) => name === "model.embed_tokens.weight");
    return [...tensors, { ...embedding, name: "lm_head.weight" }];
  });
  changeConfig(folder, { tie_word_embeddings: false });
  return folder;
}

/** Writes a model with each weight multiplied by 1 ± `amount` at most, repeatable by seed. */
export function writeStep(folder, { from, seed, amount = 0.15 }) {
  let state = seed * 2_654_435_761 + 1;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  rewrite(
    folder,
    (tensors) =>
      tensors.map(({ bytes, ...tensor }) => {
        const changed = Buffer.from(bytes);
        for (let at = 0; at < changed.length; at += 2) {
          const value = fromBfloat16(changed.readUInt16LE(at));
          changed.writeUInt16LE(toBfloat16(value * (1 + amount * (2 * next() - 1))), at);
        }
        return { ...tensor, bytes: changed };
      }),
    { from },
  );
  return folder;
}

/** Writes a file that ends in the middle, as after a kill of its writer. */
export function writeTorn(folder, from) {
  writeStep(folder, { from, seed: 9 });
  const size = readFileSync(path.join(folder, file)).length;
  truncateSync(path.join(folder, file), Math.floor(size / 2));
  return folder;
}

/** Writes another step in two files. The second one ends in the middle. */
export function writeHalfTorn(folder, from) {
  writeStep(folder, { from, seed: 9 });
  const names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
  const map = {};
  for (const [index, name] of names.entries()) {
    // Both files have parts of a layer that the server joins.
    const isHere = (tensor) => /\b(k_proj|v_proj|up_proj)\b/.test(tensor.name) === (index === 1);
    rewrite(folder, (tensors) => tensors.filter(isHere), { from: folder, to: name });
    for (const tensor of readTensors(path.join(folder, name)).tensors) map[tensor.name] = name;
  }
  rmSync(path.join(folder, file));
  const second = path.join(folder, names[1]);
  truncateSync(second, Math.floor(readFileSync(second).length / 2));
  writeFileSync(path.join(folder, `${file}.index.json`), JSON.stringify({ weight_map: map }));
  return folder;
}

/** Writes another step without one of its tensors. */
export function writeIncomplete(folder, from) {
  writeStep(folder, { from, seed: 9 });
  const left = "model.layers.2.mlp.up_proj.weight";
  rewrite(folder, (tensors) => tensors.filter(({ name }) => name !== left), { from: folder });
  return folder;
}

/** Writes a model of another shape, with perceptrons of half the width. */
export function writeNarrower(folder, from) {
  const halve = (tensor) => {
    const { name, shape, bytes } = tensor;
    if (!name.includes(".mlp.")) return tensor;
    const [rows, columns] = shape;
    const halved = name.includes("down_proj") ? [rows, columns / 2] : [rows / 2, columns];
    return { ...tensor, shape: halved, bytes: bytes.subarray(0, bytes.length / 2) };
  };
  rewrite(folder, (tensors) => tensors.map(halve), { from });
  changeConfig(folder, { intermediate_size: 192 });
  return folder;
}

/** Writes a model of another architecture. None of its tensors has a name of the served model. */
export function writeStranger(folder, from) {
  const rename = ({ name, ...tensor }) => ({ ...tensor, name: name.replace("model.", "gpt.") });
  rewrite(folder, (tensors) => tensors.map(rename), { from });
  changeConfig(folder, { architectures: ["GPT2LMHeadModel"], model_type: "gpt2" });
  return folder;
}

function changeConfig(folder, change) {
  const configFile = path.join(folder, "config.json");
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  writeFileSync(configFile, JSON.stringify({ ...config, ...change }, null, 2));
}

/** Writes the model (or another folder's) with other tensors. */
function rewrite(folder, change, { from = modelDir, to = file } = {}) {
  mkdirSync(folder, { recursive: true });
  if (from !== folder) cpSync(from, folder, { recursive: true });
  const { metadata, tensors } = readTensors(path.join(from, file));
  const header = { ...(metadata && { __metadata__: metadata }) };
  const parts = [];
  let place = 0;
  for (const { name, dtype, shape, bytes } of change(tensors)) {
    header[name] = { dtype, shape, data_offsets: [place, place + bytes.length] };
    place += bytes.length;
    parts.push(bytes);
  }
  const text = JSON.stringify(header);
  const padded = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(padded.length));
  writeFileSync(path.join(folder, to), Buffer.concat([size, padded, ...parts]));
}

function readTensors(filePath) {
  const bytes = readFileSync(filePath);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const { __metadata__: metadata, ...header } = JSON.parse(bytes.toString("utf8", 8, start));
  const tensors = Object.entries(header).map(([name, { dtype, shape, data_offsets: offsets }]) => {
    const [from, to] = offsets.map((offset) => start + offset);
    return { name, dtype, shape, bytes: bytes.subarray(from, to) };
  });
  return { metadata, tensors };
}

const word = new DataView(new ArrayBuffer(4));

function fromBfloat16(bits) {
  word.setUint32(0, bits * 2 ** 16);
  return word.getFloat32(0);
}

/** Truncates instead of rounding, because any other weight is good enough. */
function toBfloat16(value) {
  word.setFloat32(0, value);
  return word.getUint32(0) >>> 16;
}
