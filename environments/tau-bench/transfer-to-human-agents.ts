import { defineTool } from "./tau-tool.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/transfer_to_human_agents.py. */
export const transferToHumanAgents = defineTool({
  name: "transfer_to_human_agents",
  className: "TransferToHumanAgents",
  parameters: ["summary"],
  run: () => "Transfer successful",
});
