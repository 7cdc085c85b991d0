import { countOf } from "../../text/count-of.ts";
import { figuresOf } from "../analysis/group-figures.ts";
import type { Shift } from "../analysis/find-shift.ts";
import type { Cause } from "../diagnosis.ts";
import type { Evidence } from "./evidence.ts";
import { nats, percent } from "./words.ts";

/** Finds shifts of the trainer's values, and of its mask. */
export function findMoved(evidence: Evidence): readonly Cause[] {
  return [...findShift(evidence), ...findMaskShift(evidence)];
}

function findShift({ findings, thresholds, aligned, all }: Evidence): readonly Cause[] {
  const [shift, count] = mostOf(findings.shiftedRows);
  const rowCount = sumOf(findings.shiftedRows);
  if (count === 0 || rowCount / findings.rowCount <= thresholds.shiftedShare) return [];
  const left = figuresOf(aligned)?.meanAbsolute ?? all.meanAbsolute;
  return [
    {
      name: "shifted",
      text:
        `The trainer's logprobs are shifted by ${distance(shift)}: the value of token i stands at place ` +
        `i ${shift > 0 ? "+" : "-"} ${Math.abs(shift)}, in ${countOf(rowCount, "row")} of ${findings.rowCount}. Moved back, ` +
        `the mean |d| falls from ${nats(all.meanAbsolute)} to ${nats(left)}.`,
      strength: Math.max(0, all.meanAbsolute - left),
      isFinding: true,
    },
  ];
}

function findMaskShift({ findings, thresholds, raw }: Evidence): readonly Cause[] {
  const [shift, count] = mostOf(findings.maskShiftedRows);
  const rowCount = sumOf(findings.maskShiftedRows);
  if (count === 0 || rowCount / findings.rowCount <= thresholds.shiftedShare) return [];
  const lost = findings.trainedTokenCount - countValues(findings.table.trainerAt(0));
  return [
    {
      name: "mask-shifted",
      text:
        `The trainer's mask is shifted by ${distance(shift)}: it has values ${shift > 0 ? "after" : "before"} the trained ` +
        `tokens in place of theirs, in ${countOf(rowCount, "row")} of ${findings.rowCount}. ` +
        `${countOf(lost, "trained token")} (${percent(lost / findings.trainedTokenCount)}) have no value.`,
      // The difference that zeros in place of the lost values would make.
      strength: (lost / findings.trainedTokenCount) * meanOf(raw.engine),
      isFinding: true,
    },
  ];
}

function countValues(values: Float64Array): number {
  return values.reduce((count, value) => count + (Number.isNaN(value) ? 0 : 1), 0);
}

/** Returns the mean absolute logprob, in nats. */
function meanOf(logprobs: Float64Array): number {
  return logprobs.reduce((sum, logprob) => sum + Math.abs(logprob), 0) / logprobs.length;
}

function distance(shift: number): string {
  return Math.abs(shift) === 1 ? "one" : "two";
}

function mostOf(rows: ReadonlyMap<Shift, number>): readonly [shift: Shift, count: number] {
  return [...rows].toSorted(([, one], [, other]) => other - one)[0] ?? [0, 0];
}

function sumOf(rows: ReadonlyMap<Shift, number>): number {
  return [...rows.values()].reduce((sum, count) => sum + count, 0);
}
