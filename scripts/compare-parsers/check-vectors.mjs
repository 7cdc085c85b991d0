// Runs the parsers of an unpacked SGLang or vLLM on the texts of test/parser/recorded/*-vectors-*.jsonl.gz and
// lists the results that differ from the recorded ones.
//
//   python3 -m venv V && V/bin/pip install pydantic orjson partial-json-parser regex msgspec
//   V/bin/pip download --no-deps sglang==0.5.15.post1 && unzip -q -d F sglang-*.whl
//   node scripts/compare-parsers/check-vectors.mjs --folder F --python V/bin/python --revision v0.5.15.post1
//
// `expected` of SGLang's vectors is its main branch of 2026-08-20, and of vLLM's vectors 0.24 (2026-08-12).
// `by_rev` and `expected_REVISION` hold other revisions where they differ. `--write` records the results as
// those of `--revision`, or as `expected` if no revision is given. Streams are not compared.
//
// Options: --dialect sglang|vllm (sglang), --kind tools|reasoning (tools), --folder, --python, --revision, --write.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";

const { values: given } = parseArgs({
  options: {
    dialect: { type: "string", default: "sglang" },
    kind: { type: "string", default: "tools" },
    folder: { type: "string" },
    python: { type: "string", default: "python3" },
    revision: { type: "string" },
    write: { type: "boolean", default: false },
  },
});
const { dialect, kind, revision } = given;
const name = `${kind === "tools" ? "tool" : "reasoning"}-vectors-${dialect}`;
const file = new URL(`../../test/parser/recorded/${name}.jsonl.gz`, import.meta.url);
const vectors = gunzipSync(readFileSync(file))
  .toString("utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
/** Runs originals.py, which answers each request with a line. */
function runOriginals(requests) {
  const program = fileURLToPath(new URL("originals.py", import.meta.url));
  const { stdout, status } = spawnSync(given.python, [program, dialect, given.folder], {
    input: requests.map((request) => `${JSON.stringify(request)}\n`).join(""),
    stdio: ["pipe", "pipe", "inherit"],
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`Cannot run ${program}: status ${status}`);
  return stdout
    .toString("utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

// A revision does not have the parsers that were added later.
const [names] = runOriginals([{ list: true }]);
const nameOf = ({ parser }) => parser.split("|").find((each) => names[kind].includes(each));
const chosen = vectors.filter((vector) => {
  const { mode, init, env } = vector;
  const isPlain = env === undefined && init?.tokenizer_vocab === undefined;
  return mode === "non_stream" && isPlain && nameOf(vector) !== undefined;
});
const results = runOriginals(
  chosen.map((vector) => {
    const { input: text, tools = [], init: options } = vector;
    return { kind, parser: nameOf(vector), text, tools, options };
  }),
);

/** A recorded result in the form that originals.py gives. */
function asResult({ raises, normal_text: normal, content, reasoning_text: reasoning, calls = [] }) {
  if (raises !== undefined) return { raises: true };
  if (kind === "reasoning") return { reasoning, normal };
  const found = calls.map((call, index) => [
    call.name,
    call.arguments_raw,
    call.tool_index ?? index,
  ]);
  return { normal: normal ?? content ?? "", calls: found };
}

/** A result of originals.py in the form that the vectors have. */
function asRecorded({ raises, normal, reasoning, calls }) {
  if (raises !== undefined) return { raises };
  if (kind === "reasoning") return { reasoning_text: reasoning, normal_text: normal };
  const written = calls.map(([called, argumentsText, index]) => {
    return { name: called, arguments_raw: argumentsText, tool_index: index };
  });
  return { normal_text: normal, calls: written };
}

let differing = 0;
for (const [index, vector] of chosen.entries()) {
  const ofRevision = kind === "tools" ? vector.by_rev?.[revision] : vector[`expected_${revision}`];
  const recorded = asResult((revision && ofRevision) ?? vector.expected);
  const { raises } = results[index];
  const result = raises === undefined ? results[index] : { raises: true };
  if (isDeepStrictEqual(result, recorded)) continue;
  differing += 1;
  console.log(
    JSON.stringify({ id: vector.id, parser: vector.parser, recorded, result: results[index] }),
  );
  const found = asRecorded(results[index]);
  if (revision === undefined) vector.expected = found;
  else if (kind === "tools") vector.by_rev = { ...vector.by_rev, [revision]: found };
  else vector[`expected_${revision}`] = found;
}
console.log(`${differing} of ${chosen.length} results differ`);
if (given.write) {
  writeFileSync(
    file,
    gzipSync(vectors.map((row) => `${JSON.stringify(row)}\n`).join(""), { level: 9 }),
  );
}
