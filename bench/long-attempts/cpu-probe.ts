import { writeFileSync } from "node:fs";

// Preloaded by a measured process: writes its CPU time in milliseconds, and its peak memory in MiB, when it ends.
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  const figures = { cpuMs: (user + system) / 1000, peakMiB: process.resourceUsage().maxRSS / 1024 };
  writeFileSync(process.env["LONG_ATTEMPTS_FIGURES"]!, JSON.stringify(figures));
});
