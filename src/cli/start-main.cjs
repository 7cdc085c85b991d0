// Apart from start.cjs, as Node of old cannot even read an import().
void import("./main.js");
