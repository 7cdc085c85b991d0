import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";

// Preloaded by a measured process: writes its CPU time in milliseconds, and its peak memory in MiB, when it ends. Ends
// the process before its first request to the engine if LONG_ATTEMPTS_END is "first-request".
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  const figures = { cpuMs: (user + system) / 1000, peakMiB: process.resourceUsage().maxRSS / 1024 };
  writeFileSync(process.env["LONG_ATTEMPTS_FIGURES"]!, JSON.stringify(figures));
});
if (process.env["LONG_ATTEMPTS_END"] === "first-request") {
  subscribe("undici:request:create", (message) => {
    const { request } = message as { readonly request: { readonly path: string } };
    if (request.path.endsWith("/generate")) process.exit();
  });
}
