local hs = {}
local status = obj.status or {}
-- A status that speaks of an earlier generation says nothing about this one, and one of generation -1 nothing at all.
if status.health == nil or status.observedGeneration ~= obj.metadata.generation then
  hs.status = "Progressing"
  hs.message = "the scope has not been judged yet"
  return hs
end
hs.message = ""
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    hs.message = condition.message
  end
end
local failed = 0
if status.summary ~= nil then
  failed = status.summary.failed or 0
end
if status.health == "healthy" then
  hs.status = "Healthy"
elseif status.health == "unhealthy" and failed > 0 then
  hs.status = "Degraded"
elseif status.health == "unhealthy" then
  hs.status = "Progressing"
else
  hs.status = "Unknown"
end
return hs
