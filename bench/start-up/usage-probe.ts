import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";

// Loaded into a command first. When the process ends, it writes the used CPU and memory to the file that STARTUP_USAGE
// names. Any message from the parent ends the process.

/** Resources that a process used until its end. */
export interface ProcessUsage {
  /** CPU of all its threads. */
  readonly cpuSeconds: number;
  /** CPU before the first request to the engine. */
  readonly startSeconds: number;
  /** The maximum of the resident memory. */
  readonly peakMiB: number;
}

let startSeconds: number | undefined;
subscribe("undici:request:create", (message) => {
  const { request } = message as { readonly request: { readonly path: string } };
  if (request.path.endsWith("/generate")) startSeconds ??= usedSeconds();
});

function usedSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

process.on("exit", () => {
  const cpuSeconds = usedSeconds();
  const usage: ProcessUsage = {
    cpuSeconds,
    startSeconds: startSeconds ?? cpuSeconds,
    peakMiB: process.resourceUsage().maxRSS / 1024,
  };
  writeFileSync(process.env["STARTUP_USAGE"] ?? "", JSON.stringify(usage));
});
process.once("message", () => process.exit());
process.channel?.unref();
