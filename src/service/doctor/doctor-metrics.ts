import { setTimeout } from "node:timers/promises";
import { Gauge, type Registry } from "prom-client";
import type { Diagnosis } from "../../doctor/diagnosis.ts";
import { ServiceError } from "../service-error.ts";
import type { ServiceDoctor } from "./service-doctor.ts";

type Read = (diagnosis: Diagnosis) => number | undefined;

const figures: readonly (readonly [name: string, help: string, read: Read])[] = [
  ["rows", "Rows of the diagnosis", ({ counts }) => counts.rowCount],
  ["tokens", "Trained tokens that both sides have logprobs of", ({ counts }) => counts.tokenCount],
  ["findings", "Causes beyond the thresholds", ({ causes }) => causes.filter(isFinding).length],
  ["mean_difference_nats", "Mean |trainer's logprob - engine's|", ({ all }) => all?.meanAbsolute],
  ["kl_nats", "KL divergence of the trainer from the engine (k3)", ({ all }) => all?.klDivergence],
  [
    "effective_share",
    "Effective sample size of the importance ratios, 0 to 1",
    ({ all }) => all?.ratio.effectiveShare,
  ],
  [
    "outside_share",
    "Share of importance ratios outside 0.5 to 2",
    ({ all }) => all?.ratio.outsideShare,
  ],
  ["confident_share", "Share of confident disagreements", ({ all }) => all?.confidentShare],
  [
    "differing_routes_share",
    "Share of tokens and layers with other experts",
    ({ routes }) => routes?.differingShare,
  ],
];

/**
 * Adds the main figures of the live diagnosis to the metrics. They are computed with the default thresholds.
 *
 * @param options - `waitMs` is the longest wait for a doctor that is comparing large posts.
 * @returns a function that updates the metrics. Without a compared row, there are none. If the doctor is busy, they
 *   keep their values.
 */
export function addDoctorMetrics(
  doctor: Pick<ServiceDoctor, "hasPosts" | "diagnose">,
  registry: Registry,
  { waitMs = 1000 }: { readonly waitMs?: number } = {},
): () => Promise<void> {
  const registers = [registry];
  const prefix = "turnwright_service_doctor";
  const gauges = figures.map(([name, help, read]) => {
    return { gauge: new Gauge({ name: `${prefix}_${name}`, help, registers }), read };
  });
  const verdict = new Gauge({
    name: `${prefix}_verdict`,
    labelNames: ["verdict"],
    help: "1 for the verdict of the diagnosis",
    registers,
  });
  const update = async (): Promise<void> => {
    const diagnosis = await diagnosisOf(doctor);
    for (const { gauge, read } of gauges) {
      const value = diagnosis && read(diagnosis);
      // Unknown is not 0.
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    }
    verdict.reset();
    if (diagnosis !== undefined) verdict.set({ verdict: diagnosis.verdict }, 1);
  };
  let updating: Promise<void> | undefined;
  return async () => {
    updating ??= update().finally(() => {
      updating = undefined;
    });
    await Promise.race([updating, setTimeout(waitMs, undefined, { ref: false })]);
  };
}

const isFinding = (cause: { readonly isFinding: boolean }): boolean => cause.isFinding;

/**
 * Returns the diagnosis. Returns `undefined` without a compared row, and if the doctor cannot answer now: the other
 * metrics do not wait for it.
 */
async function diagnosisOf(
  doctor: Pick<ServiceDoctor, "hasPosts" | "diagnose">,
): Promise<Diagnosis | undefined> {
  if (!doctor.hasPosts) return undefined;
  try {
    const diagnosis = await doctor.diagnose();
    return diagnosis.window.rowCount === 0 ? undefined : diagnosis;
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
