// Prints `N passed, N failed, N skipped` from vitest's JSON report; failed checks count as one failure.
import { readFileSync } from "node:fs";

const [reportFile, checksStatus] = process.argv.slice(2);
let counts = { passed: 0, failed: 1, skipped: 0 };
try {
  const report = JSON.parse(readFileSync(reportFile, "utf8"));
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  ).length;
  counts = {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles,
    skipped: report.numPendingTests + report.numTodoTests,
  };
} catch {
  console.error(`No test report at ${reportFile}: the test runner did not finish`);
}
if (checksStatus !== "0") counts.failed += 1;
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
