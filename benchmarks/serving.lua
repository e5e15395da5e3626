-- Asks what the file in BODIES holds: lines with a length in bytes, each followed by so many bytes.
-- At the end it prints a line of JSON.

local requests, at = {}, 0

function init()
  local file = assert(io.open(os.getenv("BODIES"), "rb"))
  local headers = {["Content-Type"] = os.getenv("MEDIA")}
  for length in file:lines() do
    local body = file:read(tonumber(length))
    requests[#requests + 1] = wrk.format("POST", os.getenv("TARGET"), headers, body)
    file:read(1)
  end
  at = math.random(#requests)
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"answers": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
