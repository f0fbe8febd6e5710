-- tcptrace-lab: why each frame was not sent earlier, as fields for filters, columns, colours and graphs.
-- Load it with: wireshark -X lua_script:FOLDER/tcptrace_lab.lua
-- The file tcptrace_lab.frames beside this script holds one record of 16 bytes per frame. It belongs to one capture.

local RECORD_BYTES, BLOCK_RECORDS, MAX_BLOCKS = 16, 4096, 64
local WRAP_US, TOLERANCE_US = 4294967296, 2

local folder = debug.getinfo(1, "S").source:gsub("^@", ""):match("^(.*[/\\])") or ""
local path = folder .. "tcptrace_lab.frames"
local file = io.open(path, "rb")
if not file then error("tcptrace_lab: cannot read " .. path .. "; it belongs beside tcptrace_lab.lua") end

local proto = Proto("tcptrace_lab", "tcptrace-lab")
local cause_field = ProtoField.string("tcptrace_lab.cause", "Cause")
local wait_field = ProtoField.relative_time("tcptrace_lab.wait", "Wait")
local finding_field = ProtoField.string("tcptrace_lab.finding", "Finding")
local remedy_field = ProtoField.string("tcptrace_lab.remedy", "Remedy")
proto.fields = { cause_field, wait_field, finding_field, remedy_field }

local blocks, kept = {}, 0

local function block(number)
    if not blocks[number] then
        if kept == MAX_BLOCKS then blocks, kept = {}, 0 end
        file:seek("set", number * BLOCK_RECORDS * RECORD_BYTES)
        blocks[number], kept = file:read(BLOCK_RECORDS * RECORD_BYTES) or "", kept + 1
    end
    return blocks[number]
end

local function record(frame)
    local number = math.floor((frame - 1) / BLOCK_RECORDS)
    local bytes, at = block(number), (frame - 1 - number * BLOCK_RECORDS) * RECORD_BYTES + 1
    if #bytes < at + RECORD_BYTES - 1 then return 0, 0, 0, 0, 0 end
    return Struct.unpack(FORMAT, bytes, at)
end

local function is_of_this_capture(frame_time, at_us)
    local off = (math.floor((frame_time - START_S) * 1000000 - START_US + 0.5) - at_us) % WRAP_US
    return off <= TOLERANCE_US or off >= WRAP_US - TOLERANCE_US
end

function proto.dissector(_, pinfo, root)
    local seconds, nanoseconds, at_us, cause, set = record(pinfo.number)
    if cause == 0 and set == 0 then return end
    local tree = root:add(proto)
    tree:set_generated()
    if not is_of_this_capture(pinfo.abs_ts, at_us) then
        tree:append_text(": these fields belong to another capture")
        return
    end
    if cause > 0 then
        tree:append_text(": " .. CAUSES[cause])
        tree:add(cause_field, CAUSES[cause]):set_generated()
        tree:add(wait_field, NSTime.new(seconds, nanoseconds)):set_generated()
    end
    for _, number in ipairs(SETS[set] or {}) do
        local finding = FINDINGS[number]
        tree:add(finding_field, finding[1]):append_text(" (" .. finding[2] .. ")"):set_generated()
        if finding[3] ~= "" then tree:add(remedy_field, finding[3]):set_generated() end
    end
end

register_postdissector(proto)
