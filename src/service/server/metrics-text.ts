import type { GroupStore } from "../group-store.ts";
import type { ServiceHealth } from "../rollout-service.ts";

/** The service's figures in Prometheus' text format. */
export function metricsText(
  health: ServiceHealth,
  { lastCursor, acknowledged }: Pick<GroupStore, "lastCursor" | "acknowledged">,
): string {
  const { batches, queuedAttempts, runningAttempts, unreadGroups, policyVersion, state } = health;
  const lines: string[] = [];
  const add = (name: string, type: "gauge" | "counter", value: number, help: string): void => {
    const full = `turnwright_service_${name}`;
    lines.push(`# HELP ${full} ${help}`, `# TYPE ${full} ${type}`, `${full} ${value}`);
  };
  add("unfinished_batches", "gauge", batches, "Batches that are accepted and have not ended.");
  add("queued_attempts", "gauge", queuedAttempts, "Attempts that wait for a place.");
  add("running_attempts", "gauge", runningAttempts, "Attempts that have a place.");
  add("unread_groups", "gauge", unreadGroups, "Finished groups that are not acknowledged.");
  add("groups_total", "counter", lastCursor, "Groups that finished.");
  add("acknowledged_cursor", "counter", acknowledged, "Cursor of the last acknowledged group.");
  add("paused", "gauge", state === "paused" ? 1 : 0, "1 while sampling is paused.");
  if (policyVersion !== null) {
    add("policy_version", "gauge", policyVersion, "The policy's version that was announced last.");
  }
  return `${lines.join("\n")}\n`;
}
