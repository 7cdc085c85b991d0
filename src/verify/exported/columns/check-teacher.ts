import { isObject } from "../../../values/is-object.ts";
import { isSampledLogprob } from "../../../values/logprob-range.ts";
import type { PlacedArray } from "../../../export/columns/column-sink.ts";
import type { ExportTarget } from "../../../export/exporters.ts";
import { quote, type RawRow } from "../../../trajectory/violation.ts";
import { memberAt, toBit } from "../exported-row.ts";
import type { ArraysReader } from "./arrays-reader.ts";
import { isMissing } from "./is-missing.ts";

/** The state of a file's check that a record's teacher needs. */
export interface TeacherSurroundings {
  readonly has: Map<string, boolean>;
  readonly arrays: ArraysReader;
  /** Checks the place of an array within the file, after the arrays before it. */
  readonly toArray: (
    place: string,
    value: unknown,
  ) => { readonly placed?: PlacedArray; readonly wrong: readonly string[] };
}

/** The tokens of a row. In all lists, entry i is that of token i. */
interface Tokens {
  readonly ids: readonly unknown[];
  readonly mask: readonly unknown[];
}

/** Checks a teacher's columns in a record: their counts, types, shapes and values. */
export async function checkTeacher(
  as: ExportTarget,
  record: RawRow,
  about: TeacherSurroundings,
): Promise<readonly string[]> {
  if (as === "slime" || as === "miles") return checkSlime(record, about);
  if (as === "prime-rl") return checkPrimeRl(record, about);
  if (as === "verl") return await checkVerl(record, about);
  if (as === "trl") return await checkTrl(record, about);
  if (as === "tinker") return await checkTinker(record, about);
  return [];
}

function checkSlime(record: RawRow, { has }: TeacherSurroundings): readonly string[] {
  const mask = listAt(record, "loss_mask");
  return checkList(record, "teacher_log_probs", {
    has,
    count: mask.length,
    wanted: "a logprob for each id of the response",
    isRight: (value) => isSampledLogprob(value),
  });
}

function checkPrimeRl(record: RawRow, { has }: TeacherSurroundings): readonly string[] {
  const bits = listAt(record, "sample.mask").map(toBit);
  const about = { has, count: bits.length };
  return [
    ...checkList(record, "sample.ref_logprobs", {
      ...about,
      wanted: "a logprob where it is trained, 0 elsewhere",
      isRight: (value, at) => (bits[at] === 1 ? isSampledLogprob(value) : value === 0),
    }),
    ...checkList(record, "sample.ref_kl_weights", {
      ...about,
      wanted: "the mask's number",
      isRight: (value, at) => value === bits[at],
    }),
    ...checkList(record, "sample.rl_weights", {
      ...about,
      wanted: "0",
      isRight: (value) => value === 0,
    }),
  ];
}

function checkList(
  record: RawRow,
  place: string,
  {
    has,
    count,
    wanted,
    isRight,
  }: {
    readonly has: Map<string, boolean>;
    readonly count: number;
    readonly wanted: string;
    readonly isRight: (value: unknown, at: number) => boolean;
  },
): readonly string[] {
  const value = memberAt(record, place);
  const missing = isMissing(has, { place, name: place, value });
  if (value === undefined || value === null) return missing;
  if (!Array.isArray(value) || value.length !== count) {
    return [...missing, `${place} is no list of ${count} entries`];
  }
  const list = value as readonly unknown[];
  const at = list.findIndex((one, index) => !isRight(one, index));
  if (at < 0) return missing;
  return [...missing, `${place}[${at}] is ${quote(list[at])}, expected ${wanted}`];
}

async function checkVerl(record: RawRow, about: TeacherSurroundings): Promise<readonly string[]> {
  const outputs = "outputs" in record ? listAt(record, "outputs") : [record];
  const details: string[] = [];
  for (const [index, output] of outputs.entries()) {
    const before = "outputs" in record ? `outputs[${index}].` : "";
    const prompt = listAt(output, "prompt_ids");
    const tokens = { ids: [...prompt, ...listAt(output, "response_ids")] };
    const wrongRow = (row: Candidates, at: number): string | undefined => {
      const isScored = at + 1 >= prompt.length && at + 1 < tokens.ids.length;
      if (isScored) return row.some(({ id }) => id < 0) ? "an id is negative" : findFault(row);
      const isZero = row.every(({ id, logprob }) => id === 0 && logprob === 0);
      return isZero ? undefined : "expected zeros, because no scored id follows";
    };
    details.push(
      ...(await checkPair(
        memberAt(output, "extra_fields"),
        { first: "teacher_ids", second: "teacher_logprobs", before: `${before}extra_fields.` },
        { ...about, count: tokens.ids.length, wrongRow },
      )),
    );
  }
  return details;
}

async function checkTrl(record: RawRow, about: TeacherSurroundings): Promise<readonly string[]> {
  const { ids, mask }: Tokens = {
    ids: listAt(record, "sample.input_ids"),
    mask: listAt(record, "sample.completion_mask"),
  };
  const wrongRow = (row: Candidates, at: number): string | undefined => {
    const end = row.findIndex(({ id }) => id === -1);
    const own = end < 0 ? row : row.slice(0, end);
    const rest = end < 0 ? [] : row.slice(end);
    if (!rest.every(({ id, logprob }) => id === -1 && logprob === -Infinity)) {
      return "expected -1 and -inf after the last id";
    }
    if (mask[at] !== 1 && own.length === 0) return undefined;
    if (own.every(({ id }) => id !== ids[at])) return `the id ${quote(ids[at])} itself is missing`;
    return findFault(own);
  };
  return await checkPair(
    memberAt(record, "sample"),
    { first: "teacher_topk_ids", second: "teacher_topk_logprobs", before: "sample." },
    { ...about, count: ids.length, wrongRow },
  );
}

async function checkTinker(record: RawRow, about: TeacherSurroundings): Promise<readonly string[]> {
  const mask = listAt(record, "loss_fn_inputs.mask.data");
  const wrongRow = (row: Candidates, at: number): string | undefined => {
    const sum = row.reduce((total, { logprob: weight }) => total + weight, 0);
    const wanted = mask[at] === 1 ? 1 : 0;
    if (Math.abs(sum - wanted) <= 1e-4) return undefined;
    return `its weights are ${sum} together, expected ${wanted}`;
  };
  return await checkPair(
    record["cross_entropy_inputs"],
    { first: "target_tokens", second: "weights", before: "cross_entropy_inputs." },
    { ...about, count: mask.length, wrongRow },
  );
}

type Candidates = readonly { readonly id: number; readonly logprob: number }[];

/** Finds a logprob out of range or out of order, or an id that occurs twice. */
function findFault(row: Candidates): string | undefined {
  const wrong = row.find(({ logprob }) => !isSampledLogprob(logprob));
  if (wrong !== undefined) return `${wrong.logprob} is no logprob`;
  if (new Set(row.map(({ id }) => id)).size < row.length) return "an id occurs twice";
  const isFalling = row.every(({ logprob }, at) => at === 0 || logprob <= row[at - 1]!.logprob);
  return isFalling ? undefined : "a less probable id stands before a more probable one";
}

/** Checks an array of ids and one of numbers with the same shape: a row for each token. */
async function checkPair(
  holder: unknown,
  { first, second, before }: { readonly first: string; readonly second: string; before: string },
  {
    has,
    arrays,
    toArray,
    count,
    wrongRow,
  }: TeacherSurroundings & {
    readonly count: number;
    readonly wrongRow: (row: Candidates, at: number) => string | undefined;
  },
): Promise<readonly string[]> {
  const values = [first, second].map((name) => memberAt(holder, name));
  const details = [first, second].flatMap((name, index) =>
    isMissing(has, { place: before + name, name, value: values[index] }),
  );
  if (!values.every((value) => isObject(value))) return details;
  const ids = toArray(before + first, values[0]);
  const numbers = toArray(before + second, values[1]);
  details.push(...ids.wrong, ...numbers.wrong);
  if (ids.placed === undefined || numbers.placed === undefined) return details;
  const { shape } = ids.placed;
  if (ids.placed.dtype !== "int32" || numbers.placed.dtype !== "float32") {
    details.push(`${before}${first} and ${second} have other types than int32 and float32`);
  }
  const isShape = shape.length === 2 && shape[0] === count && shape[1]! > 0;
  if (!isShape || quote(shape) !== quote(numbers.placed.shape)) {
    const found = `${quote(shape)} and ${quote(numbers.placed.shape)}`;
    details.push(
      `${before}${first} and ${second} have the shapes ${found}, expected ${count} rows`,
    );
  }
  if (ids.wrong.length + numbers.wrong.length > 0 || !isShape || details.length > 0) return details;
  const [list, logprobs] = [await arrays.values(ids.placed), await arrays.values(numbers.placed)];
  const width = shape[1]!;
  for (let at = 0; at < count; at++) {
    const row = Array.from({ length: width }, (_, rank) => ({
      id: list[at * width + rank]!,
      logprob: logprobs[at * width + rank]!,
    }));
    const why = wrongRow(row, at);
    if (why !== undefined) return [`${before}${first}, row ${at}: ${why}`];
  }
  return [];
}

function listAt(record: unknown, path: string): readonly unknown[] {
  const list = memberAt(record, path);
  return Array.isArray(list) ? (list as readonly unknown[]) : [];
}
