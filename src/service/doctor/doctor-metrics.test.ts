import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { LiveDoctor, type LiveDiagnosis } from "../../doctor/live/live-doctor.ts";
import { createDeferred } from "../../testing/deferred.ts";
import { addDoctorMetrics } from "./doctor-metrics.ts";

test("metrics do not wait for a busy doctor, and ask it once", async () => {
  const empty = new LiveDoctor({ runs: "runs", tokenLimit: 1 }).diagnose();
  const diagnosis = { ...empty, window: { ...empty.window, rowCount: 1 } };
  const busy = createDeferred<LiveDiagnosis>();
  let count = 0;
  const diagnose = async (): Promise<LiveDiagnosis> => {
    count += 1;
    return await (count === 1 ? busy.promise : Promise.resolve(diagnosis));
  };
  const registry = new Registry();
  const update = addDoctorMetrics({ hasPosts: true, diagnose }, registry, { waitMs: 0 });
  await update();
  await update();
  expect(count).toBe(1);
  const verdict = 'turnwright_service_doctor_verdict{verdict="nothing-compared"} 1';
  expect(await registry.metrics()).not.toContain(verdict);
  busy.resolve(diagnosis);
  await expect.poll(async () => await registry.metrics()).toContain(verdict);
});
