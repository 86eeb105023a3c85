-- An optional argument: '' stands for nothing, and everything else begins with '='.
local function given(argument)
  if argument ~= '' then
    return string.sub(argument, 2)
  end
  return nil
end
