import { isSampledLogprob } from "../../values/logprob-range.ts";
import { isTokenId } from "../../engine/token-id.ts";
import { quote, type Violation } from "../../trajectory/violation.ts";
import { checkSpecialTokens, type SpecialTokens } from "./special-tokens.ts";
import type { ExportedRecord, ExportedRow, Part } from "./exported-row.ts";

/** Rules that only some trainers' forms have. */
interface ExportedForm {
  /** True if no token may follow the last trained token. */
  readonly endsTrained: boolean;
  /** True if each turn has an advantage of its own. */
  readonly isByTurn: boolean;
  /** The special tokens of the model. Absent if no model is known. */
  readonly special?: SpecialTokens;
}

/** Checks one record. Reports the first violation of each kind in a row. */
export function checkExported(
  { rows, reward, group, rollout, found }: ExportedRecord,
  form: ExportedForm,
): readonly Violation[] {
  const all: Violation[] = [...found];
  if (typeof reward !== "number") {
    all.push({ rule: "reward", detail: `the reward is ${quote(reward)}, expected a number` });
  }
  const isNamed = (name: unknown): boolean =>
    typeof name === "number" || (typeof name === "string" && name !== "");
  if (!isNamed(group)) all.push({ rule: "group", detail: `the group is ${quote(group)}` });
  if (rollout !== undefined && !isNamed(rollout)) {
    all.push({ rule: "shape", detail: `the rollout is ${quote(rollout)}` });
  }
  return [...all, ...rows.flatMap((row) => checkRow(row, form))];
}

function checkRow(row: ExportedRow, { endsTrained, isByTurn, special }: ExportedForm): Violation[] {
  const { prompt, ids, mask, logprobs, versions, advantages } = row;
  const found: Violation[] = [...checkIds(ids), ...(prompt ? checkIds(prompt) : [])];
  const aligned = {
    mask,
    logprobs,
    ...(versions && { versions }),
    ...(advantages && { advantages }),
  };
  for (const [name, part] of Object.entries(aligned)) {
    if (part.values.length === ids.values.length) continue;
    const detail = `${nameOf(part)} has ${part.values.length} entries of ${name} for ${ids.values.length} ids`;
    found.push({ rule: "length", detail });
  }
  found.push(
    ...firstWrong(mask, "mask", "0 or 1", (bit) => bit === 0 || bit === 1),
    ...firstWrong(
      logprobs,
      "logprobs",
      "a logprob where it is trained, 0 elsewhere",
      (value, index) => (mask.values[index] === 1 ? isSampledLogprob(value) : value === 0),
    ),
  );
  if (prompt === undefined ? mask.values[0] === 1 : prompt.values.length === 0) {
    found.push({ rule: "prompt", detail: `${ids.place(0)} is trained, with no prompt before it` });
  }
  const last = mask.values.lastIndexOf(1);
  if (last < 0) found.push({ rule: "empty", detail: "no token of the row is trained" });
  else if (endsTrained && last < mask.values.length - 1) {
    const detail = `${mask.place(last + 1)} comes after the last trained token`;
    found.push({ rule: "tail", detail });
  }
  if (special !== undefined) found.push(...checkSpecialTokens(row, special));
  if (versions !== undefined) found.push(...checkVersions(versions, mask));
  if (advantages !== undefined) found.push(...checkAdvantages(advantages, mask, isByTurn));
  return found;
}

function checkIds(part: Part): Violation[] {
  return firstWrong(part, "token-ids", "a token id", (id) => isTokenId(id));
}

function checkVersions(versions: Part, mask: Part): Violation[] {
  const isRight = (value: unknown, index: number): boolean =>
    mask.values[index] === 1 ? Number.isSafeInteger(value) && Number(value) >= 0 : value === -1;
  const wanted = "a whole number where it is trained, -1 elsewhere";
  const wrong = firstWrong(versions, "policy-versions", wanted, isRight);
  let latest = -1;
  for (const [index, value] of versions.values.entries()) {
    if (mask.values[index] !== 1 || typeof value !== "number") continue;
    if (value < latest) {
      const detail = `${versions.place(index)} is ${value}, after a token of version ${latest}`;
      return [...wrong, { rule: "policy-versions", detail }];
    }
    latest = value;
  }
  return wrong;
}

function checkAdvantages(advantages: Part, mask: Part, isByTurn: boolean): Violation[] {
  const trained = mask.values.indexOf(1);
  const own = advantages.values[trained];
  return firstWrong(
    advantages,
    "advantages",
    isByTurn
      ? "a number where it is trained, 0 elsewhere"
      : "one number where it is trained, 0 elsewhere; verify an export with --turn-discount or --teacher with that flag",
    (value, index) =>
      mask.values[index] === 1
        ? Number.isFinite(value) && (isByTurn || value === own)
        : value === 0,
  );
}

function firstWrong(
  part: Part,
  rule: string,
  wanted: string,
  isRight: (value: unknown, index: number) => boolean,
): Violation[] {
  const wrong = part.values.findIndex((value, index) => !isRight(value, index));
  if (wrong < 0) return [];
  const detail = `${part.place(wrong)} is ${quote(part.values[wrong])}, expected ${wanted}`;
  return [{ rule, detail }];
}

function nameOf(part: Part): string {
  return part.place(0).replace(/\[0\]$/, "");
}
