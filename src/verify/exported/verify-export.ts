import { isObject } from "../../values/is-object.ts";
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { UsageError, describeError } from "../../errors.ts";
import {
  arraysFileOf,
  type ColumnSink,
  type PlacedArray,
} from "../../export/columns/column-sink.ts";
import { openColumns } from "../../export/columns/open-columns.ts";
import { exportRecords } from "../../export/export-records.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import type { ExportSurroundings } from "../../export/exporter.ts";
import { readRunGroups } from "../../export/read-run-groups.ts";
import { chooseForm } from "../../export/teacher/choose-form.ts";
import { TeacherAdder } from "../../export/teacher/teacher-adder.ts";
import type { TeacherChoice } from "../../export/teacher/teacher-export.ts";
import { readStored } from "../../run/disk/read-jsonl.ts";
import { splitLines } from "../../text/split-lines.ts";
import { hashRow } from "../../trajectory/hash-row.ts";
import { parseLine, type LineViolation } from "../../trajectory/verify-file.ts";
import { quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import { AttemptSequence } from "./attempt-sequence.ts";
import { ArraysReader } from "./columns/arrays-reader.ts";
import { ColumnsCheck } from "./columns/check-columns.ts";
import { ComparedArrays } from "./columns/compared-arrays.ts";
import { checkExported } from "./check-exported.ts";
import type { SpecialTokens } from "./special-tokens.ts";
import { memberAt, type ExportedRecord } from "./exported-row.ts";
import { exportedReaders } from "./read-exported.ts";

/** The result of checking an exported file. JSON-able. */
export interface ExportVerification {
  readonly file: string;
  readonly as: ExportTarget;
  /** Number of records read. */
  readonly records: number;
  /** `line` is 1-based: the record's line, or its index in the lists of a column file. */
  readonly violations: readonly LineViolation[];
}

/** Options of `verifyExport()`. */
export interface VerifyExportOptions extends ExportSurroundings {
  /** The folder of the exported run. Absent: only the file is checked. */
  readonly run?: string;
  /** The special tokens of the model that sampled. Absent: special tokens are not checked. */
  readonly special?: SpecialTokens;
  /** The teacher whose columns the export contains. Default: none. */
  readonly teacher?: TeacherChoice;
}

/**
 * Checks an exported file. Each record must be sound, no row may occur twice, the rows of a group must
 * be adjacent, and each attempt must weigh one (see `AttemptSequence`). The arrays of side columns are read from
 * `FILE.arrays`. With a run, each record must be
 * the one that the run gives. Keeps one record in memory at a time, except for column files, which it
 * reads whole.
 * @throws UsageError if the file or the run cannot be read, or if the run cannot be exported in
 *   this form.
 */
export async function verifyExport(
  file: string,
  as: ExportTarget,
  { run, special, teacher, ...surroundings }: VerifyExportOptions = {},
): Promise<ExportVerification> {
  const form = teacher && chooseForm(as, teacher);
  const isByTurn = surroundings.turnDiscount !== undefined || form?.hasWeight === true;
  const rules = { ...exporters[as].rules, ...form?.rules };
  const endsTrained = rules.environmentTail.action === "cut";
  const once = new Once();
  const sequence = new AttemptSequence(as, isByTurn);
  await using arrays = await ArraysReader.open(arraysFileOf(file));
  const compared = new ComparedArrays(arrays);
  const columns = new ColumnsCheck(as, arrays);
  const expected =
    run === undefined
      ? undefined
      : expectedRecords(run, as, { surroundings, sink: compared, teacher });
  const violations: LineViolation[] = [];
  let line = 0;
  try {
    for await (const record of readRecords(file, as)) {
      line += 1;
      const say = (found: readonly Violation[]): void => {
        violations.push(...found.map((violation) => ({ line, ...violation })));
      };
      const wanted = await expected?.next();
      if (!isObject(record)) {
        say([{ rule: "json", detail: "the record is not a JSON object (a torn line?)" }]);
        continue;
      }
      const read = exportedReaders[as](record);
      say(checkExported(read, { endsTrained, isByTurn, ...(special && { special }) }));
      say(await columns.check(record));
      say(once.check(read));
      violations.push(...sequence.next(line, read));
      if (wanted?.done === true) {
        say([{ rule: "run", detail: "the run gives no such record" }]);
      } else if (wanted !== undefined) {
        say(compare({ ...defaultsOf(as), ...record }, wanted.value, ""));
      }
      say(compared.takeDifferent().map(toDifference));
    }
    violations.push(...sequence.end());
    violations.push(...columns.end().map((violation) => ({ line, ...violation })));
    const next = await expected?.next();
    if (next?.done === false) {
      violations.push({ line: line + 1, rule: "run", detail: "the run gives more records" });
    }
  } finally {
    // Closes the run's files.
    await expected?.return(undefined);
  }
  return { file, as, records: line, violations };
}

/** Returns the values of the columns that a file may lack. */
function defaultsOf(as: ExportTarget): RawRow {
  const { layout } = exporters[as];
  return layout === "lines" ? {} : (layout.defaults ?? {});
}

function toDifference({ offset, shape }: PlacedArray): Violation {
  const detail = `the array of shape ${quote(shape)} at byte ${offset} is not the one that the run gives`;
  return { rule: "run", detail };
}

async function* expectedRecords(
  dir: string,
  as: ExportTarget,
  {
    surroundings,
    sink,
    teacher: choice,
  }: {
    readonly surroundings: ExportSurroundings;
    readonly sink: ColumnSink;
    readonly teacher: TeacherChoice | undefined;
  },
): AsyncGenerator<RawRow> {
  const run = await readRunGroups(dir, surroundings);
  await using adder = openColumns(dir, as, { specs: run.columns, sink });
  await using teacher = await TeacherAdder.open(dir, as, { choice, sink });
  const about = { surroundings: { ...run.surroundings, ...adder?.surroundings }, adder, teacher };
  for await (const { records } of exportRecords(as, run.groups(), about)) {
    for await (const record of records) yield JSON.parse(JSON.stringify(record)) as RawRow;
  }
}

async function* readRecords(file: string, as: ExportTarget): AsyncGenerator {
  const { layout } = exporters[as];
  try {
    if (layout === "lines") {
      for await (const text of splitLines(readStored(file), file)) {
        if (text.trim() !== "") yield parseLine(text);
      }
      return;
    }
    yield* toRecords(parseLine(await readFile(file, "utf8")), layout.columns);
  } catch (error) {
    if (error instanceof UsageError || (error as NodeJS.ErrnoException).code === undefined)
      throw error;
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`, { cause: error });
  }
}

/**
 * Yields the records of a column file. A record lacks the members of columns that are too short.
 */
function* toRecords(document: unknown, columns: readonly string[]): Generator {
  if (!isObject(document)) {
    yield document;
    return;
  }
  const lists = columns.map((name) => {
    const values = document[name];
    return [name, Array.isArray(values) ? (values as readonly unknown[]) : []] as const;
  });
  const count = Math.max(...lists.map(([, values]) => values.length));
  for (let index = 0; index < count; index++) {
    yield Object.fromEntries(
      lists.flatMap(([name, values]) => (index < values.length ? [[name, values[index]]] : [])),
    );
  }
}

/**
 * Remembers the rows and groups that have occurred. Two rows of an attempt may be equal, and have different places in it
 * then.
 */
class Once {
  readonly #seen = new Map<string, number>();
  readonly #groups = new Map<unknown, number>();
  #group: unknown;
  #line = 0;
  /** The number of records of the attempt so far, for forms whose rows do not say their place. */
  #recordCount = 0;
  #rollout: unknown;

  check({ rows, rollout, group, lineage, isLast, isPerRow }: ExportedRecord): readonly Violation[] {
    this.#line += 1;
    const found: Violation[] = [];
    if (group !== this.#group && this.#groups.has(group)) {
      const detail = `the group ${quote(group)} continues here, and its earlier rows end at ${this.#groups.get(group)}`;
      found.push({ rule: "group", detail });
    }
    this.#group = group;
    this.#groups.set(group, this.#line);
    // Without rollout ids, two equal rows may both have been sampled.
    if (rollout === undefined) return found;
    this.#recordCount = rollout === this.#rollout ? this.#recordCount + 1 : 0;
    this.#rollout = rollout;
    const hidesPlace = isLast !== undefined || isPerRow === true;
    const record = hidesPlace ? this.#recordCount : memberAt(lineage, "row");
    for (const [index, { prompt, ids, mask }] of rows.entries()) {
      const place = [record ?? null, index];
      const key = hashRow([rollout, place, prompt?.values ?? [], ids.values, mask.values]);
      const before = this.#seen.get(key);
      this.#seen.set(key, this.#line);
      if (before === undefined) continue;
      const detail = `the row of ${quote(rollout)} is there already, at ${before}`;
      found.push({ rule: "trained-once", detail });
    }
    return found;
  }
}

/** Returns the first difference between a record and the run's record, with its path. */
function compare(actual: unknown, wanted: unknown, path: string): Violation[] {
  if (isDeepStrictEqual(actual, wanted)) return [];
  const [ours, theirs] = [membersOf(actual), membersOf(wanted)];
  if (ours === undefined || theirs === undefined) {
    const detail = `${path} is ${quote(actual)}, expected ${quote(wanted)} by the run`;
    return [{ rule: "run", detail }];
  }
  const isList = Array.isArray(actual);
  for (const name of new Set([...theirs.keys(), ...ours.keys()])) {
    const place = isList ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const found = compare(ours.get(name), theirs.get(name), place);
    if (found.length > 0) return found;
  }
  return [];
}

function membersOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)) : undefined;
}
