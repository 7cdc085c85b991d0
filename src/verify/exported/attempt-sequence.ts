import type { Exporter } from "../../export/exporter.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import type { LineViolation } from "../../trajectory/verify-file.ts";
import { isCount, quote, type Violation } from "../../trajectory/violation.ts";
import { memberAt, type ExportedRecord, type ExportedRow } from "./exported-row.ts";

/** The largest error of an advantage that was rounded to 32 bits, relative to the rewards. */
const tolerance = 1e-6;

/** An attempt whose records have been read so far. */
interface OpenAttempt {
  readonly rollout: unknown;
  readonly number: unknown;
  readonly reward: unknown;
  readonly advantage: unknown;
  readonly lineage: unknown;
  rowCount: number;
  tokenCount: number;
  /** The line of its last record. */
  line: number;
  isLast: unknown;
}

/** A group whose attempts are read. */
interface OpenGroup {
  readonly group: unknown;
  readonly attempts: { readonly reward: unknown; readonly advantage: unknown; line: number }[];
}

/**
 * Checks that each attempt of an exported file has the weight 1: its rows are adjacent and complete, with one reward,
 * one advantage and one number, and the advantages count the attempt once in its group.
 */
export class AttemptSequence {
  readonly #as: ExportTarget;
  readonly #exporter: Exporter;
  readonly #lineagePath: string;
  readonly #isByTurn: boolean;
  readonly #ended = new Map<unknown, number>();
  readonly #numbers = new Map<unknown, unknown>();
  #open: OpenAttempt | undefined;
  #group: OpenGroup | undefined;

  /** @param isByTurn - True if each turn has an advantage of its own. */
  constructor(as: ExportTarget, isByTurn: boolean) {
    this.#as = as;
    this.#exporter = exporters[as];
    this.#lineagePath = this.#exporter.lineagePath ?? "lineage";
    this.#isByTurn = isByTurn;
  }

  /** Takes the next record. Returns the violations of the record, and of an attempt or group that ended before it. */
  next(line: number, record: ExportedRecord): readonly LineViolation[] {
    const found: LineViolation[] = [];
    const { rollout, group } = record;
    const isSame = rollout !== undefined && this.#open?.rollout === rollout;
    if (!isSame) found.push(...this.#endAttempt());
    if (this.#group === undefined || this.#group.group !== group) {
      found.push(...this.#endGroup());
      this.#group = { group, attempts: [] };
    }
    const own = isSame ? this.#continue(record) : this.#begin(record, line);
    found.push(...own.map((violation) => ({ line, ...violation })));
    const open = this.#open!;
    open.line = line;
    open.isLast = record.isLast;
    found.push(...this.#checkRows(record).map((violation) => ({ line, ...violation })));
    open.rowCount += record.rows.length;
    open.tokenCount += record.rows.reduce((sum, row) => sum + trainedCount(row), 0);
    return found;
  }

  /** Ends the file. */
  end(): readonly LineViolation[] {
    return [...this.#endAttempt(), ...this.#endGroup()];
  }

  #begin({ rollout, number, reward, lineage, rows }: ExportedRecord, line: number): Violation[] {
    const found: Violation[] = [];
    const before = rollout === undefined ? undefined : this.#ended.get(rollout);
    if (before !== undefined) {
      const detail = `${quote(rollout)} continues here, and its earlier rows end at ${before}`;
      found.push({ rule: "attempt", detail });
    }
    if (number !== undefined) {
      const owner = this.#numbers.get(number);
      if (owner !== undefined && owner !== rollout) {
        const detail = `${quote(rollout)} has the number ${quote(number)} of ${quote(owner)}`;
        found.push({ rule: "attempt", detail });
      }
      this.#numbers.set(number, rollout);
    }
    const advantage = advantageOf(rows[0]);
    this.#open = {
      rollout,
      number,
      reward,
      advantage,
      lineage,
      rowCount: 0,
      tokenCount: 0,
      line,
      isLast: undefined,
    };
    if (before === undefined) this.#group!.attempts.push({ reward, advantage, line });
    return found;
  }

  #continue({ rollout, number, reward, isLast, isPerRow }: ExportedRecord): Violation[] {
    const open = this.#open!;
    const found: Violation[] = [];
    const say = (what: string, value: unknown, first: unknown): void => {
      if (value === first) return;
      const detail = `${what} is ${quote(value)}, and ${quote(first)} in an earlier row of ${quote(rollout)}`;
      found.push({ rule: "attempt", detail });
    };
    if (this.#exporter.isPerAttempt === true && isPerRow !== true) {
      const detail = `${quote(rollout)} has a record already, and each attempt has one`;
      return [{ rule: "attempt", detail }];
    }
    say("the reward", reward, open.reward);
    say("the number", number, open.number);
    if (open.isLast === true) {
      const detail = `the last row of ${quote(rollout)} stands before, by its is_last_step`;
      found.push({ rule: "attempt", detail });
    } else if (isLast === undefined && this.#as === "skyrl") {
      const detail = `${quote(rollout)} has several rows, and is_last_step is missing`;
      found.push({ rule: "attempt", detail });
    }
    return found;
  }

  #checkRows({ rollout, rows, lineage }: ExportedRecord): Violation[] {
    const open = this.#open!;
    const found: Violation[] = [];
    for (const row of rows) {
      const advantage = advantageOf(row);
      if (this.#isByTurn || advantage === open.advantage) continue;
      const detail = `the advantage is ${quote(advantage)}, and ${quote(open.advantage)} in another row of ${quote(rollout)}`;
      found.push({ rule: "attempt", detail });
    }
    if (lineage === undefined && open.lineage === undefined) return found;
    const wanted = {
      row: open.rowCount,
      rowCount: memberAt(open.lineage, "rowCount"),
      attemptTokenCount: memberAt(open.lineage, "attemptTokenCount"),
    };
    for (const [name, value] of Object.entries(wanted)) {
      const actual = memberAt(lineage, name);
      if (actual === value && isCount(actual)) continue;
      const detail = `${this.#lineagePath}.${name} is ${quote(actual)} at row ${open.rowCount} of ${quote(rollout)}, expected ${quote(value)}`;
      found.push({ rule: "attempt", detail });
    }
    return found;
  }

  #endAttempt(): LineViolation[] {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return [];
    const { rollout, line, rowCount, tokenCount, lineage, isLast } = open;
    if (rollout !== undefined) this.#ended.set(rollout, line);
    const found: LineViolation[] = [];
    if (isLast !== undefined && isLast !== true) {
      const detail = `is_last_step is ${quote(isLast)} at the last row of ${quote(rollout)}`;
      found.push({ line, rule: "attempt", detail });
    }
    for (const [name, count] of [
      ["rowCount", rowCount],
      ["attemptTokenCount", tokenCount],
    ] as const) {
      const said = memberAt(lineage, name);
      if (lineage === undefined || said === count) continue;
      const detail = `${this.#lineagePath}.${name} of ${quote(rollout)} is ${quote(said)}, and the file has ${count}`;
      found.push({ line, rule: "attempt", detail });
    }
    return found;
  }

  /** Checks that each advantage is the reward minus the mean over the group's attempts. */
  #endGroup(): LineViolation[] {
    const { attempts = [], group } = this.#group ?? {};
    this.#group = undefined;
    const rewards = attempts.map(({ reward }) => Number(reward));
    if (this.#isByTurn || !rewards.every(Number.isFinite)) return [];
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
    const scale = Math.max(1, ...rewards.map(Math.abs));
    return attempts.flatMap(({ reward, advantage, line }) => {
      if (advantage === undefined) return [];
      const wanted = Number(reward) - mean;
      if (Math.abs(Number(advantage) - wanted) <= tolerance * scale) return [];
      const detail = `the advantage is ${quote(advantage)}, expected ${wanted}: the reward minus the mean of the ${attempts.length} attempts of ${quote(group)}`;
      return [{ line, rule: "advantages", detail }];
    });
  }
}

/** Returns the advantage of a row's first trained token, or `undefined` if the form has none. */
function advantageOf(row: ExportedRow | undefined): unknown {
  const first = row?.mask.values.indexOf(1) ?? -1;
  return row?.advantages?.values[first];
}

function trainedCount({ mask }: ExportedRow): number {
  return mask.values.filter((bit) => bit === 1).length;
}
