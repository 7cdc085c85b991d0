import { simulate } from "./simulate.ts";

// A process of `many-seeds.mjs`: node seeds-main.mjs FIRST SECONDS. Plays one seed after the other, and prints a line
// of JSON for each that fails and one for all together.
const [first = "0", seconds = "0"] = process.argv.slice(2);
const untilMs = performance.now() + Number(seconds) * 1000;
/** The simulation has a clock of its own in the place of this one. */
const now = performance.now.bind(performance);
const sums = { seeds: 0, processes: 0, turns: 0 };
for (let seed = Number(first); now() < untilMs; seed++) {
  const { lives, scenario, turns, wrong } = await simulate(seed);
  sums.seeds += 1;
  sums.processes += lives;
  sums.turns += turns;
  if (wrong.length > 0) console.log(JSON.stringify({ seed, scenario, wrong }));
}
console.log(JSON.stringify({ sums }));
// A killed run's leftovers need not finish.
process.exit();
