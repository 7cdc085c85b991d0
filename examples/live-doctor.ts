// Posts a trainer's logprobs of a group that a service handed out, and names the causes of a mismatch.
import { diagnosisText, type Diagnosis } from "turnwright/doctor";

/** A row of a group, as the service streams it. */
export interface HandedOutRow {
  readonly rolloutId: string;
  readonly segment: number;
  readonly tokenIds: readonly number[];
}

/**
 * Posts the logprobs of a batch's rows.
 *
 * @param score - Returns one logprob for each token of a row, or null where the trainer has none.
 * @throws Error with the service's message, which names the line and the fault.
 */
export async function postLogprobs(
  service: string,
  {
    batch,
    rows,
    policyVersion,
  }: { batch: string; rows: readonly HandedOutRow[]; policyVersion: number },
  score: (row: HandedOutRow) => readonly (number | null)[],
): Promise<void> {
  const lines = rows.map((row) => {
    const { rolloutId, segment } = row;
    return `${JSON.stringify({ batch, rolloutId, segment, logprobs: score(row), policyVersion })}\n`;
  });
  const headers = { "content-type": "application/x-ndjson" };
  const url = new URL("/v1/trainer-logprobs", service);
  const answer = await fetch(url, { method: "POST", headers, body: lines.join("") });
  if (!answer.ok) throw new Error(await answer.text());
}

/** Prints the diagnosis of the newest rows. Returns true if a cause is beyond the thresholds. */
export async function hasMismatch(service: string): Promise<boolean> {
  const answer = await fetch(new URL("/v1/doctor", service));
  const diagnosis = (await answer.json()) as Diagnosis;
  console.log(diagnosisText(diagnosis));
  return diagnosis.hasFinding;
}
