import type { ForeignTool, Tool } from "../../environment/define-tool.ts";
import type { ParameterCheck } from "../../environment/tool-parameters.ts";

/**
 * Returns a tool of a server that reports once if parts of its schema are not checked here, and once if arguments could
 * not be checked. The server checks both as well.
 */
export function reportUnchecked<State>(
  { tool, unusable }: ForeignTool<State>,
  serverName: string,
  report: (trouble: string) => void,
): Tool<State> {
  const quoted = JSON.stringify(serverName);
  if (unusable.length > 0) {
    report(
      `a part of the schema of tool ${quoted} is not checked here, the server checks it: ` +
        unusable.join("; "),
    );
  }
  const check = reportOnce(tool.callable.check, (why) =>
    report(`arguments of tool ${quoted} were not checked here, the server checks them: ${why}`),
  );
  return { ...tool, callable: { ...tool.callable, check } };
}

function reportOnce(
  check: ParameterCheck["check"],
  report: (why: string) => void,
): ParameterCheck["check"] {
  let isReported = false;
  return (given) => {
    const checked = check(given);
    if ("unchecked" in checked && checked.unchecked !== undefined && !isReported) {
      isReported = true;
      report(checked.unchecked);
    }
    return checked;
  };
}
