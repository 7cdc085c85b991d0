import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type * as posting from "../../examples/live-doctor.ts";
import { startDoctorThread } from "../../src/doctor/live/thread/start-doctor.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { openLamps, twoLamps } from "../../src/service/lamp-service.fixture.ts";
import type { RolloutService } from "../../src/service/rollout-service.ts";
import { serveRollouts, type ServedRollouts } from "../../src/service/server/serve-rollouts.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { callCli } from "../support/call-cli.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

let dir = "";
let service: RolloutService;
let served: ServedRollouts;
let rows: readonly Sample[];
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-live-command-"));
  // In a thread, as `turnwright serve` has it.
  service = await openLamps(dir, { doctor: { start: startDoctorThread } });
  const place = { host: "127.0.0.1", port: 0, version: "0.1.0", redactor: new Redactor() };
  served = await serveRollouts(service, place);
  const body = JSON.stringify(twoLamps);
  const headers = { "content-type": "application/json" };
  await fetch(`${served.url}/v1/batches`, { method: "POST", headers, body });
  const text = await (await fetch(`${served.url}/v1/groups?batch=b1`)).text();
  rows = text.split("\n").flatMap((line) => {
    const { group } = JSON.parse(line === "" ? "{}" : line) as {
      readonly group?: { readonly attempts: readonly { readonly rows: readonly Sample[] }[] };
    };
    return group?.attempts.flatMap((attempt) => attempt.rows) ?? [];
  });
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

async function metrics(): Promise<string> {
  return await (await fetch(`${served.url}/metrics`)).text();
}

const logprobsOf = ({ logprobs, lossMask }: Sample): readonly (number | null)[] =>
  logprobs.map((logprob, index) => (lossMask[index] === 1 ? logprob : null));

test("the guide's program posts rows, acknowledged ones too, and the command has the verdict", async () => {
  const example = path.join(root, "dist/examples/live-doctor.js");
  const { postLogprobs, hasMismatch } = (await import(example)) as typeof posting;
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const doctor = ["doctor", "--url", served.url, "--lag", "0"];
  expect(await metrics()).not.toContain("doctor_rows 4");
  const empty = await callCli(doctor);
  expect([empty.status, empty.stdout.split("\n")[0]]).toEqual([
    1,
    "nothing-compared: Nothing could be compared: the trainer has posted no logprobs since the service started.",
  ]);
  await service.acknowledge({ batch: "b1" });
  const about = { batch: "b1", rows, policyVersion: 13 };
  await postLogprobs(served.url, about, (row) => logprobsOf(row as Sample));
  expect(await hasMismatch(served.url)).toBe(false);
  expect(log.mock.calls[0]![0]).toMatch(/^Healthy: mean \|d\| is 0 nats over \d+ tokens/);
  const healthy = await callCli(doctor);
  expect([healthy.status, healthy.stderr]).toEqual([0, ""]);
  expect(healthy.stdout).toMatch(/^Healthy: /);
  const text = await metrics();
  expect(text).toContain("turnwright_service_doctor_rows 4\n");
  expect(text).toContain("turnwright_service_doctor_findings 0\n");
  expect(text).toContain("turnwright_service_doctor_mean_difference_nats 0\n");
  expect(text).toContain('turnwright_service_doctor_verdict{verdict="healthy"} 1\n');
  await postLogprobs(served.url, about, (row) =>
    logprobsOf(row as Sample).map((value) => (value === null ? null : value - 3)),
  );
  const { status, stdout } = await callCli([...doctor, "--json"]);
  const { hasFinding, window } = JSON.parse(stdout) as { hasFinding: boolean; window: object };
  expect([status, hasFinding, window]).toEqual([
    1,
    true,
    { rowCount: 4, droppedRowCount: 0, tokenLimit: 262_144 },
  ]);
  await expect(
    postLogprobs(served.url, { ...about, batch: "b9" }, (row) => logprobsOf(row as Sample)),
  ).rejects.toThrow("line 1: there is no batch");
  log.mockRestore();
});

test.each([
  [
    ["doctor"],
    "Cannot compare: expected a run's folder with --trainer-logprobs FILE, or --url ADDRESS of a service",
  ],
  [
    ["doctor", "runs/first"],
    "Cannot compare: expected a run's folder with --trainer-logprobs FILE",
  ],
  [
    ["doctor", "runs/first", "--url", "http://127.0.0.1:1"],
    "Cannot use --url with a folder, --trainer-logprobs, --model or --partial",
  ],
  [["doctor", "--url", "127.0.0.1:1"], "Cannot use --url 127.0.0.1:1: expected http://host:port"],
  [["doctor", "--url", "http://127.0.0.1:1"], "Cannot ask http://127.0.0.1:1: "],
])("%s is a wrong call", async (args, message) => {
  const { status, stderr } = await callCli(args);
  expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
});
