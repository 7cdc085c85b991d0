import { Counter, Gauge, Registry, collectDefaultMetrics } from "prom-client";
import { addDoctorMetrics } from "../doctor/doctor-metrics.ts";
import type { RolloutService } from "../rollout-service.ts";

/** The service's metrics in Prometheus' text format. */
export interface ServiceMetrics {
  readonly contentType: string;
  /** Returns all metrics with their current values. */
  text(): Promise<string>;
}

type Read = (service: RolloutService) => number | undefined;

const gauges: readonly (readonly [name: string, help: string, read: Read])[] = [
  [
    "unfinished_batches",
    "Batches that are accepted and have not ended",
    ({ health }) => health.batches,
  ],
  ["queued_attempts", "Attempts that wait for a place", ({ health }) => health.queuedAttempts],
  ["running_attempts", "Attempts that have a place", ({ health }) => health.runningAttempts],
  [
    "unread_groups",
    "Finished groups that are not acknowledged",
    ({ health }) => health.unreadGroups,
  ],
  [
    "acknowledged_cursor",
    "Cursor of the last acknowledged group",
    ({ groups }) => groups.acknowledged,
  ],
  ["paused", "1 while sampling is paused", ({ health }) => (health.state === "paused" ? 1 : 0)],
  [
    "policy_version",
    "The policy's version that was announced last; absent before the first",
    ({ health }) => health.policyVersion ?? undefined,
  ],
];

/**
 * Creates the metrics of a service. They include the process's memory, CPU use and event-loop
 * delay, under the names that Prometheus' clients use.
 */
export function createServiceMetrics(service: RolloutService): ServiceMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const full = (name: string): string => `turnwright_service_${name}`;
  for (const [name, help, read] of gauges) {
    const gauge = new Gauge({
      name: full(name),
      help,
      registers,
      collect() {
        const value = read(service);
        // Unknown is not 0.
        if (value === undefined) gauge.remove();
        else gauge.set(value);
      },
    });
  }
  const groups = new Counter({
    name: full("groups_total"),
    help: "Groups that finished",
    registers,
    collect() {
      groups.reset();
      groups.inc(service.groups.lastCursor);
    },
  });
  const attempts = new Counter({
    name: full("attempts_total"),
    labelNames: ["outcome"],
    registers,
    help: "Attempts in groups delivered since this start, by outcome",
    collect() {
      attempts.reset();
      for (const [outcome, count] of service.outcomes) attempts.inc({ outcome }, count);
    },
  });
  const updateDoctor = addDoctorMetrics(service.doctor, registry);
  return {
    contentType: registry.contentType,
    async text() {
      await updateDoctor();
      return await registry.metrics();
    },
  };
}
