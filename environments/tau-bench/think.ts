import { defineTool } from "./tau-tool.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/think.py. */
export const think = defineTool({
  name: "think",
  className: "Think",
  parameters: ["thought"],
  run: () => "",
});
