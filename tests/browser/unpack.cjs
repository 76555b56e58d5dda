// Unpacks what @sparticuz/chromium has compressed with Brotli: node unpack.cjs FROM TO
"use strict";
const { createReadStream, createWriteStream, readdirSync } = require("node:fs");
const { join } = require("node:path");
const { pipeline } = require("node:stream");
const { createBrotliDecompress } = require("node:zlib");

const [from, to] = process.argv.slice(2);
for (const name of readdirSync(from).filter((name) => name.endsWith(".br")))
  pipeline(
    createReadStream(join(from, name)),
    createBrotliDecompress({ chunkSize: 1 << 21 }),
    createWriteStream(join(to, name.slice(0, -3))),
    (error) => { if (error) throw error; },
  );
