import { writeFileSync } from "node:fs";

// Loaded into a command first. When the process ends, it writes the used CPU and memory to the file that STARTUP_USAGE
// names. Any message from the parent ends the process.

/** Resources that a process used until its end. */
export interface ProcessUsage {
  /** CPU of all its threads. */
  readonly cpuSeconds: number;
  /** The maximum of the resident memory. */
  readonly peakMiB: number;
}

process.on("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage: ProcessUsage = {
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
    peakMiB: maxRSS / 1024,
  };
  writeFileSync(process.env["STARTUP_USAGE"] ?? "", JSON.stringify(usage));
});
process.once("message", () => process.exit());
process.channel?.unref();
