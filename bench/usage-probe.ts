import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";

// Loaded into a command first. When the process ends, it writes its use of CPU and memory to the file that USAGE_FILE
// names. The process ends at any message from its parent, and before its first request to the engine if USAGE_END is
// "first-request".

/** Resources that a process used until its end. */
export interface ProcessUsage {
  /** CPU of all its threads. */
  readonly cpuMs: number;
  /** CPU before the first request to the engine. */
  readonly startMs: number;
  /** The maximum of the resident memory. */
  readonly peakMiB: number;
}

let startMs: number | undefined;
subscribe("undici:request:create", (message) => {
  const { request } = message as { readonly request: { readonly path: string } };
  if (!request.path.endsWith("/generate")) return;
  if (process.env["USAGE_END"] === "first-request") process.exit();
  startMs ??= usedMs();
});

function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

process.on("exit", () => {
  const cpuMs = usedMs();
  const peakMiB = process.resourceUsage().maxRSS / 1024;
  const usage: ProcessUsage = { cpuMs, startMs: startMs ?? cpuMs, peakMiB };
  writeFileSync(process.env["USAGE_FILE"]!, JSON.stringify(usage));
});
process.once("message", () => process.exit());
process.channel?.unref();
