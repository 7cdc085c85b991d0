import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { defineTool } from "../tau-tool.ts";

const cities: ReadonlyMap<string, string> = new Map([
  ["SFO", "San Francisco"],
  ["JFK", "New York"],
  ["LAX", "Los Angeles"],
  ["ORD", "Chicago"],
  ["DFW", "Dallas"],
  ["DEN", "Denver"],
  ["SEA", "Seattle"],
  ["ATL", "Atlanta"],
  ["MIA", "Miami"],
  ["BOS", "Boston"],
  ["PHX", "Phoenix"],
  ["IAH", "Houston"],
  ["LAS", "Las Vegas"],
  ["MCO", "Orlando"],
  ["EWR", "Newark"],
  ["CLT", "Charlotte"],
  ["MSP", "Minneapolis"],
  ["DTW", "Detroit"],
  ["PHL", "Philadelphia"],
  ["LGA", "LaGuardia"],
]);

/** **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/list_all_airports.py. */
export const listAllAirports = defineTool({
  name: "list_all_airports",
  className: "ListAllAirports",
  parameters: [],
  run: () => stringifyPythonJson(cities),
});
